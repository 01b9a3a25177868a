package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/child/box"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
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
func (*graveyard) Owed(string, string) []string                     { return nil }

func (g *graveyard) KillTree(_ context.Context, id json.RawMessage) error {
	g.tree = string(id)
	return g.err
}

// small is a supervisor of which nothing runs.
func small(cfg Config) *supervisor {
	cfg.Logger, cfg.Observer = hclog.NewNullLogger(), unobserved{}
	s := newSupervisor(cfg)
	s.self = election.Node{Node: "a", Machine: "m1", Boot: "b1"}
	return s
}

// handedOn is a service with a term, in a tree, that was handed over, and has not gone on yet.
func handedOn(t *testing.T, s *supervisor, tree Tree, id json.RawMessage) *service.Service {
	t.Helper()
	term := &service.Carried{Tree: id, Run: &unit.Carried{}}
	if err := json.Unmarshal([]byte(`{"programs": [{}], "parts": [{"program": 0}]}`), term.Run); err != nil {
		t.Fatal(err)
	}
	if err := term.Find(func(json.RawMessage) (host.Tree, bool) { return tree, true }, s.log); err != nil {
		t.Fatal(err)
	}
	v := s.roster.add(Service{Name: "db"})
	r := service.Record{Name: "db", Term: term}
	r.State.Carried = true
	v.Remember(r)
	return v
}

// A question is about a tree of the service that it names. If this supervisor made the tree, the tree is asked; otherwise the machine.
func TestADeathIsProvedByTheOneThatCanKnowIt(t *testing.T) {
	errLives := errors.New("it lives")
	own, other := json.RawMessage(`{"mark":"own"}`), json.RawMessage(`{"mark":"other"}`)
	for name, c := range map[string]struct {
		change func(*agent.Question)
		end    error // of our own tree
		kill   error // of another
		want   fencing.Verdict
		ended  int
		others string
	}{
		"our own":            {want: fencing.Dead, ended: 1},
		"our own, alive":     {end: errLives, want: fencing.Alive, ended: 1},
		"a predecessor's":    {change: func(q *agent.Question) { q.Tree = other }, want: fencing.Dead, others: string(other)},
		"one that lives on":  {change: func(q *agent.Question) { q.Tree = other }, kill: errLives, want: fencing.Alive, others: string(other)},
		"of another service": {change: func(q *agent.Question) { q.Service = "web" }, kill: box.ErrNotSeen, want: fencing.Unknown, others: string(own)},
		"another machine's":  {change: func(q *agent.Question) { q.Machine = "m2" }, want: fencing.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			tree, machine := &tomb{err: c.end}, &graveyard{err: c.kill}
			s := small(Config{Machine: machine})
			handedOn(t, s, tree, own)
			q := agent.Question{Service: "db", Token: 1, Node: "a", Machine: "m1", Boot: "b1", Tree: own, By: "b", ByToken: 2}
			if c.change != nil {
				c.change(&q)
			}
			verdict, _, err := s.answerer().prove(t.Context(), q)
			if verdict != c.want || (err != nil) != (verdict == fencing.Alive) || tree.ended != c.ended || machine.tree != c.others {
				t.Errorf("%v, %v; ended %d times, of others %q", verdict, err, tree.ended, machine.tree)
			}
		})
	}
}
