package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/unit"
	"understudy/supervisor/witness"
)

// tomb is a tree that ends as it is told.
type tomb struct {
	host.Tree
	err   error
	ended int
}

func (t *tomb) End(context.Context) error { t.ended++; return t.err }

// graveyard is a machine with the trees of others.
type graveyard struct {
	host.Machine
	err  error
	tree string
	of   fencing.Target // whose effects were asked for
	owed []string       // of this boot
}

func (*graveyard) Outlasted(json.RawMessage, fencing.ProcessID) error { return nil }

func (g *graveyard) PendingEffects(of fencing.Target, boot string) []string {
	if g.of = of; of.Boot != boot {
		return of.Survive
	}
	return g.owed
}

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
func handedOn(t *testing.T, s *supervisor, tree host.Tree, id json.RawMessage) *service.Service {
	t.Helper()
	term := &service.CarriedTerm{Tree: id, Run: &unit.CarriedRun{}}
	must.OK(t, json.Unmarshal([]byte(`{"programs": [{}], "parts": [{"program": 0}]}`), term.Run))
	v := s.roster.add(service.Conf{Name: "db"})
	r := service.CarriedService{Name: "db", Term: term}
	must.OK(t, r.Find(func(json.RawMessage) (host.Tree, bool) { return tree, true }, s.log))
	r.State.Carried = true
	v.Remember(r)
	return v
}

// A question is about a tree of the service that it names. If this supervisor made the tree, the tree is asked; otherwise the machine.
func TestADeathIsProvedByTheOneThatCanKnowIt(t *testing.T) {
	errLives := errors.New("it lives")
	own, other := json.RawMessage(`{"mark":"own"}`), json.RawMessage(`{"mark":"other"}`)
	elsewhere := func(q *agent.Question) { q.Tree = other }
	for name, c := range map[string]struct {
		change func(*agent.Question)
		end    error // of our own tree
		kill   error // of another
		want   fencing.Liveness
		owed   []string
		ended  int
		others string
	}{
		"our own":               {want: fencing.Dead, ended: 1},
		"our own, alive":        {end: errLives, want: fencing.Alive, ended: 1},
		"a predecessor's":       {change: elsewhere, want: fencing.Dead, others: string(other)},
		"a predecessor's, owed": {change: elsewhere, owed: []string{"vip"}, want: fencing.Alive, others: string(other)},
		"one that lives on":     {change: elsewhere, kill: errLives, want: fencing.Alive, others: string(other)},
		"one not seen":          {change: elsewhere, kill: box.ErrNotSeen, want: fencing.Unknown, others: string(other)},
		"one from elsewhere":    {change: elsewhere, kill: box.ErrElsewhere, want: fencing.Unknown, others: string(other)},
		"of another service":    {change: func(q *agent.Question) { q.Service = "web" }, kill: box.ErrNotSeen, want: fencing.Unknown, others: string(own)},
		"another machine's":     {change: func(q *agent.Question) { q.Machine = "m2" }, want: fencing.Unknown},
		"another boot's":        {change: func(q *agent.Question) { q.Boot, q.Tree = "b0", other }, want: fencing.Dead},
		"another boot, a clone": {change: func(q *agent.Question) { q.Boot, q.Node, q.Tree = "b0", "z", other }, want: fencing.Unknown},
		"another boot, no id":   {change: func(q *agent.Question) { q.Boot, q.Machine, q.Tree = "b0", "", other }, want: fencing.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			tree, machine := &tomb{err: c.end}, &graveyard{err: c.kill, owed: c.owed}
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

// P2: whoever answers for a machine that has booted since looks for what survives that, in its own cluster.
func TestABootIsNoProofOfWhatSurvivesIt(t *testing.T) {
	machine := &graveyard{}
	answerer := small(Config{Machine: machine, Root: "/one"}).answerer()
	for _, survive := range [][]string{nil, {"role"}} {
		verdict, _, err := answerer.prove(t.Context(),
			agent.Question{Service: "db", Token: 7, Node: "a", Machine: "m1", Boot: "b0", Survive: survive, By: "b", ByToken: 8})
		if dead := verdict == fencing.Dead; dead != (survive == nil) || (err == nil) != dead || machine.of.Root != "/one" || machine.of.Token != 7 {
			t.Errorf("of %q: %v, %v, asked for %+v", survive, verdict, err, machine.of)
		}
	}
}

// A machine with no note of what survives a boot has not undone it.
func TestWhatIsOwedIsWhatTheNotesShow(t *testing.T) {
	of := fencing.Target{Root: "/one", Service: "unheard of", Node: "nobody", Token: 7, Boot: "b0", Survive: []string{"role"}}
	if owed := PendingEffects(of, "b1"); !slices.Equal(owed, of.Survive) || len(PendingEffects(of, "b0")) > 0 {
		t.Errorf("owed: %q", owed)
	}
}

// Where services of several clusters run on one host, each is asked for its own pending undos. Who asks names the cluster.
func TestKillLocalCountsWhatItsClusterOwes(t *testing.T) {
	need.These(t, "root") // who may write the note
	here, err := box.Identity()
	name, err2 := os.Hostname()
	note := unit.Note{Node: "a", Service: t.Name(), Cluster: "two"}.Store()
	must.OK(t, errors.Join(err, err2, note.Save([]byte(`{"node":"a","service":"`+t.Name()+`","root":"/two","pending_undos":[{"name":"vip"}]}`), false)))
	t.Cleanup(func() { _ = note.Save(nil, false) })
	for root, dead := range map[string]bool{"/one": true, "/two": false, "": false} { // an older version does not name it
		word := fencing.Target{Root: root, Service: t.Name(), Node: "a", Host: name, Machine: here.Machine, Boot: "another"}.Encode()
		target, err := fencing.DecodeTarget(word)
		if s := witness.KillLocal(t.Context(), target, PendingEffects); err != nil || s.Dead != dead || dead == (len(s.Left) > 0) {
			t.Errorf("%q: %+v, %v", root, s, err)
		}
	}
}
