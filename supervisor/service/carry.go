package service

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// A supervisor that becomes another image of its process, by an exec, hands its terms over: a child that runs does not notice.
// For each service that is a term which ends without its end (no stop, no release) and goes on elsewhere, at "running". What
// keeps the promises meanwhile is what keeps them while a supervisor is frozen: the lease that is left, and the guardians.

// Stance is what an upgrade would find of a service.
type Stance int32

// The stances.
const (
	Free    Stance = iota // nothing that takes time
	Passing               // what is not over yet: a claim, a start, a stop
	Fit                   // programs that can be handed over
	Stuck                 // a child that is not proved dead, or a lock that cannot be given back
)

const (
	fit   = int32(Fit)
	stuck = int32(Stuck)
)

// Stance is the service's. It is safe.
func (v *Service) Stance() Stance { return Stance(v.stance.Load()) }

// stanceOf is that of a place; a run that is ready says so itself, and so does what does not die.
func stanceOf(now role.State) int32 {
	switch now.Role() {
	case election.RoleClaiming, election.RoleFencing, election.RoleActive, election.RoleStopping:
		return int32(Passing)
	}
	return int32(Free)
}

// Carried is a term in which programs run, for the next image of this process.
type Carried struct {
	Claim election.CarriedClaim `json:"claim"`
	Entry election.Activation   `json:"entry"`
	Name  string                `json:"name,omitempty"` // of the entry, where that is written
	Tree  json.RawMessage       `json:"tree"`
	Run   *unit.Carried         `json:"run"`

	tree unit.Tree
}

func carry(claim election.CarriedClaim, entry election.Activation, tree unit.Tree, run *unit.Carried) (*Carried, error) {
	id, err := tree.ID()
	return &Carried{Claim: claim, Entry: entry, Name: entry.Entry, Tree: id, Run: run, tree: tree}, err
}

func (c *Carried) entry() election.Activation {
	entry := c.Entry
	entry.Entry = c.Name
	return entry
}

// Find looks the term's tree and processes up in a guard that was handed over.
func (c *Carried) Find(adopted func(tree json.RawMessage) (unit.Tree, bool), log hclog.Logger) error {
	tree, ok := adopted(c.Tree)
	if !ok {
		return errors.New("its tree is not there")
	}
	c.tree = tree
	if c.Run == nil {
		return errors.New("it has no programs")
	}
	return c.Run.Find(tree, log)
}

// Record is what is remembered of a service that does not serve, and its term if it has one.
type Record struct {
	Name     string                    `json:"name"`
	State    role.State                `json:"state"`
	Birth    election.Birth            `json:"birth"`
	Place    election.CarriedCandidate `json:"place"`
	Failure  string                    `json:"failure,omitempty"`
	Cause    election.Reason           `json:"cause,omitempty"`
	Failures []time.Time               `json:"failures,omitempty"`
	Delay    time.Duration             `json:"delay,omitempty"`
	Token    int64                     `json:"token,omitempty"`
	Fenced   string                    `json:"fenced,omitempty"`
	Since    time.Time                 `json:"since"`
	Orders   carriedOut                `json:"orders"`
	GaveUp   int                       `json:"gave_up,omitempty"` // times, in a row
	Demoted  time.Time                 `json:"demoted,omitzero"`
	Debts    []unit.Debt               `json:"debts,omitempty"`
	Term     *Carried                  `json:"term,omitempty"`
}

// Record tells what is to be remembered of a service that does not serve now.
func (v *Service) Record() Record {
	m := &v.mem
	return Record{
		Name: v.name, State: v.state, Birth: m.birth, Place: m.place, Failure: m.failure, Cause: v.view.cause,
		Failures: m.restarts.failures, Delay: m.restarts.delay, Token: m.token, Fenced: m.fenced, Since: v.view.since, Orders: m.orders,
		GaveUp: m.relapses.times, Demoted: m.relapses.until, Debts: v.unit.Debts(), Term: v.carried,
	}
}

// Remember is Record's reverse, for a service that has just been made.
func (v *Service) Remember(r Record) {
	m := &v.mem
	m.begun = true
	v.unit.Restore(r.Debts)
	v.state, m.birth, m.place, m.failure = r.State, r.Birth, r.Place, r.Failure
	v.view.cause, v.view.since = r.Cause, r.Since
	m.restarts.failures, m.restarts.delay, m.token, m.fenced = r.Failures, r.Delay, r.Token, r.Fenced
	m.orders, m.relapses, v.carried = r.Orders, relapses{r.GaveUp, r.Demoted}, r.Term
	if v.carried != nil {
		v.engage()
		// An agent may be asked before the term goes on.
		v.trees.add(&Tree{ID: r.Term.Tree, tree: r.Term.tree, end: func(error) {}, owes: v.unit.Owes})
	}
}
