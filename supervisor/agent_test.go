package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/child"
)

// tomb is a tree that ends as it is told.
type tomb struct {
	Tree
	err   error
	ended int
}

func (t *tomb) End(context.Context) error { t.ended++; return t.err }

// graveyard is a machine with the trees of others.
type graveyard struct {
	Machine
	err  error
	tree string
}

func (*graveyard) Outlasted(json.RawMessage, fencing.Process) error { return nil }

func (g *graveyard) KillTree(_ context.Context, id json.RawMessage) error {
	g.tree = string(id)
	return g.err
}

// A death is vouched for only when whoever can know it has proved it.
func TestDeathIsVouchedForOnlyWithProof(t *testing.T) {
	errLives := errors.New("it lives")
	own, other := json.RawMessage(`{"mark":"own"}`), json.RawMessage(`{"mark":"other"}`)
	for name, c := range map[string]struct {
		change  func(*agent.Question)
		end     error // of our own tree
		kill    error // of another
		want    fencing.Verdict
		ended   int
		others  string
		isErr   bool
		stopped bool
		owes    int // that often
	}{
		"our own":               {want: fencing.Dead, ended: 1, stopped: true},
		"our own, to be undone": {owes: 3, want: fencing.Dead, ended: 1, stopped: true},
		"our own, never undone": {owes: 1 << 30, want: fencing.Unknown, ended: 1, stopped: true},
		"our own, alive":        {end: errLives, want: fencing.Alive, ended: 1, isErr: true, stopped: true},
		"a predecessor's":       {change: func(q *agent.Question) { q.Tree = other }, want: fencing.Dead, others: string(other)},
		"one that lives on":     {change: func(q *agent.Question) { q.Tree = other }, kill: errLives, want: fencing.Alive, isErr: true, others: string(other)},
		"one not seen":          {change: func(q *agent.Question) { q.Tree = other }, kill: child.ErrNotSeen, want: fencing.Unknown, others: string(other)},
		"one from elsewhere":    {change: func(q *agent.Question) { q.Tree = other }, kill: child.ErrElsewhere, want: fencing.Unknown, others: string(other)},
		"of another service":    {change: func(q *agent.Question) { q.Service = "web" }, kill: child.ErrNotSeen, want: fencing.Unknown, others: string(own)},
		"another machine's":     {change: func(q *agent.Question) { q.Machine = "m2" }, want: fencing.Unknown},
		"another boot's":        {change: func(q *agent.Question) { q.Boot = "b0" }, want: fencing.Dead},
		"another boot, a clone": {change: func(q *agent.Question) { q.Boot, q.Node = "b0", "z" }, want: fencing.Unknown},
		"another boot, no id":   {change: func(q *agent.Question) { q.Boot, q.Machine = "b0", "" }, want: fencing.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tree, machine := &tomb{err: c.end}, &graveyard{err: c.kill}
				var stopped error
				v := &service{name: "db"}
				v.mortals.add(&mortal{id: own, tree: tree, fell: func(why error) { stopped = why }, owes: func() bool { c.owes--; return c.owes >= 0 }})
				s := &supervisor{cfg: Config{Machine: machine}, self: election.Node{Node: "a", Machine: "m1", Boot: "b1"}, services: []*service{v}}
				q := agent.Question{Service: "db", Token: 1, Node: "a", Machine: "m1", Boot: "b1", Tree: own, By: "b", ByToken: 2}
				if c.change != nil {
					c.change(&q)
				}
				verdict, _, err := s.vouch(t.Context(), q)
				if verdict != c.want || (err != nil) != c.isErr {
					t.Errorf("%v, %v", verdict, err)
				}
				if tree.ended != c.ended || machine.tree != c.others {
					t.Errorf("ended %d times, of others %q", tree.ended, machine.tree)
				}
				if (stopped != nil) != c.stopped || stopped != nil && !errors.Is(stopped, election.ErrLost) {
					t.Errorf("the term was ended by %v", stopped)
				}
				if verdict == fencing.Dead && c.owes > 0 {
					t.Error("it is called dead, and something is to be undone")
				}
			})
		})
	}
}

// The newest trees are remembered, so many and no more.
func TestNewestTreesAreRemembered(t *testing.T) {
	var m mortals
	id := func(i int) json.RawMessage { return json.RawMessage{byte('a' + i)} }
	for i := range mortalsKept + 3 {
		m.add(&mortal{id: id(i)})
	}
	if m.find(id(2)) != nil || m.find(id(3)) == nil || m.find(id(mortalsKept+2)) == nil || len(m.all) != mortalsKept {
		t.Errorf("%d are kept", len(m.all))
	}
}

// Without a method an agent is asked while the grace delay lasts; what is configured stays as it is.
func TestAgentIsAskedWhereNothingIsConfigured(t *testing.T) {
	mine, his := &Agent{}, &election.BreadCrumb{Agent: "a:1"}
	exec := []fencing.Step{{Method: fencing.Exec{}, Timeout: time.Second}}
	for name, c := range map[string]struct {
		v     *service
		crumb *election.BreadCrumb
		grace time.Duration
		want  string
		limit time.Duration
	}{
		"asked":         {v: &service{agent: mine}, crumb: his, grace: 8 * time.Second, want: "agent", limit: 8 * time.Second},
		"no grace":      {v: &service{agent: mine}, crumb: his, want: "agent", limit: askAtLeast},
		"we have none":  {v: &service{}, crumb: his},
		"he has none":   {v: &service{agent: mine}, crumb: &election.BreadCrumb{}},
		"a method":      {v: &service{agent: mine, Service: Service{Fence: exec}}, crumb: his, want: "exec", limit: time.Second},
		"none has none": {v: &service{}, crumb: &election.BreadCrumb{}},
	} {
		steps, _ := c.v.steps(c.crumb, c.grace)
		got, limit := "", time.Duration(0)
		if len(steps) > 0 {
			got, limit = steps[0].Method.Name(), steps[0].Timeout
		}
		if got != c.want || limit != c.limit || len(steps) > 1 {
			t.Errorf("%s: %q for %v", name, got, limit)
		}
	}
}
