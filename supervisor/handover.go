package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/unit"
)

// A supervisor that becomes another image of its process, by an exec, hands its terms over: a child that runs does not notice.
// For each service that is a term which ends without its end (no stop, no release) and goes on elsewhere, at "running". What
// keeps the promises meanwhile is what keeps them while a supervisor is frozen: the lease that is left, and the guardians.

// errHandover ends the stay of a service in a session without the child's end, if that can be; otherwise it is a stop.
var errHandover = errors.New("another image of this process is to go on")

func handing(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errHandover) }

// carriedTerm is a term in which the child runs.
type carriedTerm struct {
	Claim  election.CarriedClaim `json:"claim"`
	Entry  election.Activation   `json:"entry"`
	Record string                `json:"record,omitempty"` // where that is written
	Tree   json.RawMessage       `json:"tree"`
	Run    *unit.Carried         `json:"run"`

	tree Tree
}

// What an upgrade would find.
const (
	free    int32 = iota // nothing that takes time
	passing              // what is not over yet: a claim, a start, a stop
	fit                  // a child that can be handed over
	stuck                // a child that is not proved dead, or a lock that cannot be given back
)

func stanceOf(r role) int32 {
	switch r {
	case Claiming, Fencing, Active, Stopping:
		return passing
	}
	return free
}

// handOver makes a term ready to go on elsewhere.
func (v *service) handOver(claim *election.Claim, tree Tree, entry election.Activation) bool {
	held, err := claim.Carry()
	var id json.RawMessage
	if err == nil {
		id, err = tree.ID()
	}
	run := v.running
	v.running = nil
	if err != nil {
		v.log.Warn("the term cannot be handed over, it is ended", "service", v.name, "error", err)
		run.Discard()
		return false
	}
	v.carried = &carriedTerm{Claim: held, Entry: entry, Record: entry.Entry, Tree: id, Run: run, tree: tree}
	return true
}

// goOn is stand for a term that was handed over. P5 was kept by its beginning; all else is as in any term.
func (v *service) goOn(ctx context.Context, t turn) (action, error) {
	c := v.carried
	claim, err := t.cand.Resume(c.Claim)
	if err != nil {
		return nothing, fmt.Errorf("go on with the term: %w", err)
	}
	v.carried, v.running = nil, c.Run
	ctx, fell := context.WithCancelCause(ctx)
	defer fell(nil)
	v.mortals.add(v.mortal(c.Tree, c.tree, fell))
	entry := c.Entry
	entry.Entry = c.Record
	var over event
	if t.gate.Enter(ctx, gated{v}, claim) {
		over = v.active(ctx, t, claim, c.tree, &entry)
	} else {
		v.running.Discard()
		v.running = nil
		over = ending(ctx)
	}
	return v.conclude(ctx, t, claim, c.tree, entry, over, true)
}

// drop ends what was handed over and cannot go on. The session, or this node's stay in it, ends with it.
func (v *service) drop(ctx context.Context, t turn) error {
	tree, entry := v.carried.tree, v.carried.Entry
	entry.Entry = v.carried.Record
	v.words = &lastWords{entry: entry, over: leaseEnding}
	v.carried.Run.Discard()
	v.carried = nil
	v.log.Error("the term cannot go on, ending the child", "service", v.name)
	v.on(leaseEnding)
	if err := v.end(ctx, t, tree); err != nil {
		v.on(treeAlive)
		return err
	}
	v.on(treeDead)
	v.unit.UndoAll(context.WithoutCancel(ctx))
	return nil
}

// carriedService is what is remembered of a service, and its term if it has one.
type carriedService struct {
	Name      string            `json:"name"`
	Birth     election.Birth    `json:"birth"`
	Standing  election.Standing `json:"standing"`
	Failed    bool              `json:"failed,omitempty"`
	Refused   bool              `json:"refused,omitempty"`
	Failure   string            `json:"failure,omitempty"`
	Cause     string            `json:"cause,omitempty"`
	Failures  []time.Time       `json:"failures,omitempty"`
	Delay     time.Duration     `json:"delay,omitempty"`
	Token     int64             `json:"token,omitempty"`
	Fenced    string            `json:"fenced,omitempty"`
	Since     time.Time         `json:"since"`
	Restarted string            `json:"restarted,omitempty"`
	Reloaded  string            `json:"reloaded,omitempty"`
	Followed  string            `json:"followed,omitempty"`
	GaveUp    int               `json:"gave_up,omitempty"` // times, in a row
	Demoted   time.Time         `json:"demoted,omitzero"`
	Debts     []unit.Debt       `json:"debts,omitempty"`
	Term      *carriedTerm      `json:"term,omitempty"`
}

// carry tells what is to be remembered of a service that does not run now.
func (v *service) carry() carriedService {
	return carriedService{
		Name: v.name, Birth: v.birth, Standing: v.stood, Failed: v.state.failed, Refused: v.refused, Failure: v.failure, Cause: v.cause.String(),
		Failures: v.tries.failures, Delay: v.tries.delay, Token: v.token, Fenced: v.fenced, Since: v.since, Restarted: v.restarted,
		Reloaded: v.reloaded, Followed: v.followed, GaveUp: v.relapses.times, Demoted: v.relapses.until, Debts: v.unit.Debts(), Term: v.carried,
	}
}

// remember is carry's reverse.
func (v *service) remember(c carriedService) {
	v.begun = true
	v.unit.Restore(c.Debts)
	v.birth, v.stood, v.state.failed, v.refused, v.failure = c.Birth, c.Standing, c.Failed, c.Refused, c.Failure
	v.cause = event(max(slices.Index(eventNames[:], c.Cause), 0))
	v.tries.failures, v.tries.delay, v.token, v.fenced, v.since = c.Failures, c.Delay, c.Token, c.Fenced, c.Since
	v.restarted, v.reloaded, v.carried = c.Restarted, c.Reloaded, c.Term
	v.followed, v.relapses = c.Followed, relapses{c.GaveUp, c.Demoted}
	if v.carried != nil {
		v.engage()
		v.mortals.add(v.mortal(c.Term.Tree, c.Term.tree, func(error) {})) // an agent may be asked before the term goes on
	}
}

// find looks a term's tree and processes up in the guard.
func (c *carriedTerm) find(guard adopter, log hclog.Logger) error {
	tree, ok := guard.Adopted(c.Tree)
	if !ok {
		return errors.New("its tree is not there")
	}
	c.tree = tree
	if c.Run == nil {
		return errors.New("it has no programs")
	}
	return c.Run.Find(tree, log)
}

// terms tells of which services a term is handed over.
func terms(all []carriedService) (names []string) {
	for _, c := range all {
		if c.Term != nil {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}
