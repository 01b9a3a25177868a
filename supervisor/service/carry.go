package service

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/replica"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// A supervisor that becomes another image of its process, by an exec, hands its terms over, and running children do not notice.
// For the service, its term stops without stop or release here, and continues in the other image, in place Running. Meanwhile the
// promises hold as they do while a supervisor is frozen: by the rest of the lease, and by the guardians.

// UpgradeState is the state in which an upgrade would find a service.
type UpgradeState int32

// The upgrade states.
const (
	Free       UpgradeState = iota // nothing that takes time
	Passing                        // a claim, a start or a stop is under way
	Fit                            // programs that can be handed over
	Stuck                          // a child that is not proved dead
	NotUndone                      // effects that cannot be undone
	Unreleased                     // a lock that cannot be given back
	Mending                        // prepare or reclone changes a copy's data
)

// Blocks is why an upgrade has to be given up, as it would find the service of that name for an unknown time; "": it need not.
func (u UpgradeState) Blocks(name string) string {
	switch u {
	case Stuck:
		return "the program of " + name + " is not proved dead" + instead
	case NotUndone:
		return "the effects of " + name + " are not undone" + instead
	case Unreleased:
		return "the lock of " + name + " cannot be given back" + instead
	case Mending:
		return "prepare or reclone of " + name + " is running here; upgrade once `understudy status` shows that it has ended"
	}
	return ""
}

const instead = "; restart this supervisor instead (systemctl restart understudy)"

// offer notes the upgrade state. It follows from the place, from whether a run is ready, and from parts that cannot be ended.
func (v *Service) offer(u UpgradeState) { v.finds.Store(int32(u)) }

// Upgrade is the service's upgrade state. It is safe.
func (v *Service) Upgrade() UpgradeState {
	finds := UpgradeState(v.finds.Load())
	if v.copy == nil || finds != Free {
		return finds
	}
	switch mends, passes := v.copy.Busy(); {
	case mends:
		return Mending
	case passes:
		return Passing
	}
	return Free
}

// upgradeIn is the upgrade state in a place.
func upgradeIn(now role.State) UpgradeState {
	switch now.Role() {
	case election.RoleClaiming, election.RoleFencing, election.RoleActive, election.RoleStopping:
		return Passing
	}
	return Free
}

// CarriedTerm is a term in which programs run, for the next image of this process.
type CarriedTerm struct {
	Claim election.CarriedClaim `json:"claim"`
	Entry election.Activation   `json:"entry"`
	Name  string                `json:"name,omitempty"` // of the entry, where that is written
	Seen  time.Time             `json:"seen"`           // its programs were watched until then
	Tree  json.RawMessage       `json:"tree"`
	Run   *unit.CarriedRun      `json:"run"`
	// PromoteTree is the tree of what promotes and demotes a copy; nil: there is none.
	PromoteTree json.RawMessage `json:"promote_tree,omitempty"`

	tree        host.Tree
	promoteTree host.Tree
	until       time.Duration // promises cover it so long after its session has expired; 0: its session lives
}

func (t *term) carry(claim election.CarriedClaim, run *unit.CarriedRun) (c *CarriedTerm, err error) {
	c = &CarriedTerm{
		Claim: claim, Entry: t.entry.Activation, Name: t.entry.Entry, Seen: time.Now().UTC(), Run: run,
		tree: t.tree, promoteTree: t.promotion.promoteTree,
	}
	c.Tree, err = c.tree.ID()
	if err == nil && c.promoteTree != nil {
		c.PromoteTree, err = c.promoteTree.ID()
	}
	return c, err
}

// Trees is how many trees it has.
func (c *CarriedTerm) Trees() int {
	if c.PromoteTree == nil {
		return 1
	}
	return 2
}

// Outlasts is until when a term whose session has expired may go on in the next one; 0: there is none. It is called while the service does
// not serve.
func (v *Service) Outlasts() time.Duration {
	if v.carried == nil {
		return 0
	}
	return v.carried.until
}

// goesOn begins a term that was handed over.
func (t *stay) goesOn(claim *election.Claim, c *CarriedTerm) {
	t.beginTerm(claim, election.Effects{})
	t.term.entry.carried(c)
	t.term.promotion.promoteTree = c.promoteTree
}

// carried is the entry of a term that was handed over. Until the term goes on, nobody sees when its programs end.
func (e *entry) carried(c *CarriedTerm) {
	e.Activation, e.endSeen = c.Entry, c.Seen
	e.Entry = c.Name
}

// Find looks the trees and processes up in a guard that was handed over.
func (r *CarriedService) Find(adopted func(tree json.RawMessage) (host.Tree, bool), log hclog.Logger) (err error) {
	find := func(id json.RawMessage, run *unit.CarriedRun) (host.Tree, error) {
		tree, ok := adopted(id)
		if !ok {
			return nil, errors.New("its tree is not there")
		}
		if run == nil {
			return tree, nil
		}
		return tree, run.Find(tree, log)
	}
	if c := r.Term; c != nil {
		if c.Run == nil {
			return errors.New("it has no programs")
		}
		c.tree, err = find(c.Tree, c.Run)
		if err == nil && c.PromoteTree != nil {
			c.promoteTree, err = find(c.PromoteTree, nil)
		}
	}
	if err == nil && r.Copy != nil {
		err = r.Copy.Find(find)
	}
	return err
}

// Runs are the programs that run.
func (r *CarriedService) Runs() (all []*unit.CarriedRun) {
	if r.Term != nil {
		all = append(all, r.Term.Run)
	}
	if r.Copy != nil && r.Copy.Run != nil {
		all = append(all, r.Copy.Run)
	}
	return all
}

// CarriedService is the part of the envelope for a service that does not serve, with its term if it has one.
type CarriedService struct {
	Name         string                    `json:"name"`
	State        role.State                `json:"state"`
	Birth        election.Birth            `json:"birth"`
	Known        Known                     `json:"known"`
	SetBacks     int64                     `json:"set_backs,omitempty"`
	Place        election.CarriedCandidate `json:"place"`
	Failure      string                    `json:"failure,omitempty"`
	Cause        election.Reason           `json:"cause,omitempty"`
	Restarts     int                       `json:"restarts,omitempty"`
	Exit         string                    `json:"exit,omitempty"`
	Exited       *time.Time                `json:"exited,omitempty"`
	Failures     []time.Time               `json:"failures,omitempty"`
	Delay        time.Duration             `json:"delay,omitempty"`
	Token        int64                     `json:"token,omitempty"`
	Fenced       string                    `json:"fenced,omitempty"`
	Role         election.Role             `json:"role,omitempty"`
	Since        time.Time                 `json:"since"` // when it took that role
	Orders       carriedOut                `json:"orders"`
	GaveUp       int                       `json:"gave_up,omitempty"` // times, in a row
	Demoted      time.Time                 `json:"demoted,omitzero"`
	PendingUndos []unit.PendingUndo        `json:"pending_undos,omitempty"`
	Lasting      int64                     `json:"lasting,omitempty"`
	Term         *CarriedTerm              `json:"term,omitempty"`
	Copy         *replica.Carried          `json:"copy,omitempty"`
	// Fresh says that its first stay is not over: the next image reads what earlier supervisors have left, too.
	Fresh bool `json:"fresh,omitempty"`
}

// Ran is a config of programs that were started as these were, for a service that is not in the config any more.
func (r *CarriedService) Ran() Conf {
	conf := Conf{Name: r.Name, Service: config.Service{Eligible: true}}
	runs := r.Runs()
	if r.Copy == nil || len(runs) == 0 {
		return conf
	}
	conf.Replicated = &config.Replicated{Interval: time.Second, Timeout: time.Second}
	conf.Processes = runs[0].Programs
	if r.Copy.Warm {
		conf.Warm = &config.Warm{}
	}
	return conf
}

// Carry returns what the next image of this process has to know of a service that does not serve now.
func (v *Service) Carry() CarriedService {
	m := &v.mem
	last, relapses := m.lastTerm, m.preference.relapses
	r := CarriedService{
		Name: v.name, State: v.state, Birth: m.birth, Known: m.known, SetBacks: m.setBacks, Place: m.place,
		Failure: last.failure, Cause: last.cause, Restarts: last.restarts, Exit: last.exit, Exited: last.exited,
		Failures: m.restarts.failures, Delay: m.restarts.delay, Token: last.token, Fenced: last.fenced,
		Role: v.view.previous.role, Since: v.view.previous.since, Orders: v.inbox.intents.done, GaveUp: relapses.times,
		Demoted: relapses.until, PendingUndos: v.unit.PendingUndos(), Lasting: v.unit.Lasting(), Term: v.carried, Fresh: !m.begun,
	}
	if v.copy != nil {
		r.Copy = v.copy.Carry()
	}
	return r
}

// ResumeCopy has the copy looked after that has left for an upgrade. It is called while the service does not serve.
func (v *Service) ResumeCopy() {
	if v.copy != nil && v.copy.Carry() != nil {
		v.copy.begin()
	}
}

// Remember restores a record in a new service.
func (v *Service) Remember(r CarriedService) {
	m := &v.mem
	v.unit.Restore(r.PendingUndos, r.Lasting)
	v.state = r.State
	v.carried = r.Term
	m.begun, m.birth, m.known, m.place = !r.Fresh, r.Birth, r.Known, r.Place
	m.setBacks = r.SetBacks
	m.lastTerm = lastTerm{r.Token, r.Fenced, r.Failure, r.Cause, r.Restarts, r.Exit, r.Exited}
	m.restarts.failures, m.restarts.delay = r.Failures, r.Delay
	m.preference.relapses = relapses{r.GaveUp, r.Demoted}
	v.inbox.intents.done, v.view.previous, v.view.upgraded = r.Orders, shownRole{role: r.Role, since: r.Since}, true
	if r.Term != nil {
		v.engage()
		// Another node may ask the agent before the term continues.
		v.trees.add(&OwnTree{
			ID: r.Term.Tree, tree: r.Term.tree, end: func(error) {}, pendingEffects: v.unit.PendingEffects, promoteTree: r.Term.promoteTree,
		})
	}
	if r.Copy != nil && v.copy != nil {
		v.copy.Adopt(r.Copy)
		if v.Removed() {
			v.copy.Halt("it is not in the config")
		}
	}
}
