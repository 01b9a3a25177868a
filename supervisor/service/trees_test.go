package service

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/child/box"
	"understudy/supervisor/unit"
	"understudy/supervisor/witness"
)

// graveyard is a machine with the trees of others.
type graveyard struct {
	err  error
	tree string
}

func (g *graveyard) kill(_ context.Context, id json.RawMessage) error {
	g.tree = string(id)
	return g.err
}

// A tree counts as dead only when the one who can know has proved it.
func TestADeathIsBelievedOnlyWithProof(t *testing.T) {
	type where struct {
		node, machine, boot string
		tree                json.RawMessage
	}
	errLives := errors.New("it lives")
	own, other := json.RawMessage(`{"mark":"own"}`), json.RawMessage(`{"mark":"other"}`)
	for name, c := range map[string]struct {
		change  func(*where)
		end     error // of our own tree
		kill    error // of another
		want    fencing.Verdict
		ended   int
		others  string
		isErr   bool
		stopped bool
		owes    int      // that often
		owed    []string // by a former supervisor
	}{
		"our own":               {want: fencing.Dead, ended: 1, stopped: true},
		"our own, to be undone": {owes: 3, want: fencing.Dead, ended: 1, stopped: true},
		"our own, never undone": {owes: 1 << 30, want: fencing.Alive, ended: 1, isErr: true, stopped: true},
		"our own, alive":        {end: errLives, want: fencing.Alive, ended: 1, isErr: true, stopped: true},
		"a predecessor's, owed": {change: func(q *where) { q.tree = other }, owed: []string{"vip"}, want: fencing.Alive, isErr: true, others: string(other)},
		"a predecessor's":       {change: func(q *where) { q.tree = other }, want: fencing.Dead, others: string(other)},
		"one that lives on":     {change: func(q *where) { q.tree = other }, kill: errLives, want: fencing.Alive, isErr: true, others: string(other)},
		"one not seen":          {change: func(q *where) { q.tree = other }, kill: box.ErrNotSeen, want: fencing.Unknown, others: string(other)},
		"one from elsewhere":    {change: func(q *where) { q.tree = other }, kill: box.ErrElsewhere, want: fencing.Unknown, others: string(other)},
		"another machine's":     {change: func(q *where) { q.machine = "m2" }, want: fencing.Unknown},
		"another boot's":        {change: func(q *where) { q.boot = "b0" }, want: fencing.Dead},
		"another boot's, owed":  {change: func(q *where) { q.boot, q.tree = "b0", other }, owed: []string{"vip"}, want: fencing.Alive, isErr: true},
		"another boot, a clone": {change: func(q *where) { q.boot, q.node = "b0", "z" }, want: fencing.Unknown},
		"another boot, no id":   {change: func(q *where) { q.boot, q.machine = "b0", "" }, want: fencing.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tree, machine := &grave{err: c.end}, &graveyard{err: c.kill}
				var stopped error
				v := made(t, Conf{}, nil)
				v.trees.add(&Tree{ID: own, tree: tree, end: func(why error) { stopped = why }, owed: func() []string {
					if c.owes--; c.owes >= 0 {
						return []string{"vip"}
					}
					return nil
				}})
				q := where{"a", "m1", "b1", own}
				if c.change != nil {
					c.change(&q)
				}
				w := witness.At{Node: "a", Host: box.Host{Machine: "m1", Boot: "b1"}, End: machine.kill, Look: empty{}.Outlasted, Owed: func(fencing.Target, string) []string { return c.owed }}
				if one := v.Tree(q.tree); one != nil {
					w.Owed, w.End = nil, func(ctx context.Context, _ json.RawMessage) error { return one.Kill(ctx, "b", 2) }
				}
				verdict, _, err := w.Prove(t.Context(), fencing.Target{Service: "db", Node: q.node, Machine: q.machine, Boot: q.boot, Tree: q.tree})
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
	var m trees
	id := func(i int) json.RawMessage { return json.RawMessage{byte('a' + i)} }
	for i := range treesKept + 3 {
		m.add(&Tree{ID: id(i)})
	}
	if m.find(id(2)) != nil || m.find(id(3)) == nil || m.find(id(treesKept+2)) == nil || len(m.all) != treesKept {
		t.Errorf("%d are kept", len(m.all))
	}
}

// An agent may be asked for a death before the term goes on: what the oneshots did, an address say, is still there then.
func TestATreeThatIsCarriedIsKnownFromTheStart(t *testing.T) {
	v := made(t, Conf{}, nil)
	id := json.RawMessage(`{"tree":1}`)
	v.Remember(Record{Name: "db", Debts: []unit.Debt{{Name: "vip"}}, Term: &Carried{Tree: id}})
	first := v.Tree(id)
	if first == nil || len(first.owed()) == 0 {
		t.Fatalf("known of it: %+v", first)
	}
	again := v.testStay(t.Context(), Session{}, &grave{})
	again.Treed(func(error) {})
	if found := v.Tree(id); found == nil || found == first {
		t.Error("its former stay is found")
	}
}

// A claimant looks at its own machine, for the tree and for the process that was seen alive of it.
func TestWhoClaimsLooksAtItsOwnMachine(t *testing.T) {
	m, tree := &shown{}, json.RawMessage(`{}`)
	v := made(t, Conf{}, func(n *Node) { n.Machine = m })
	for alive, want := range map[error]fencing.Verdict{nil: fencing.Dead, box.ErrUnproved: fencing.Alive, box.ErrMayLive: fencing.Unknown} {
		m.alive = alive
		seen := fencing.Process{Pid: 7, Start: 70}
		verdict, _, _ := v.breadcrumb.witness().Prove(t.Context(), fencing.Target{Service: "db", Node: "a", Machine: "m1", Boot: "b1", Tree: tree, Seen: seen})
		if verdict != want || m.asked != seen || m.tree != string(tree) {
			t.Errorf("%v: %v, asked for %+v of %s", alive, verdict, m.asked, m.tree)
		}
		if err := v.breadcrumb.outlasted(tree)(election.Leftover{Pid: 8, Start: 80}); !errors.Is(err, alive) || m.asked != (fencing.Process{Pid: 8, Start: 80}) {
			t.Errorf("%v: before its breadcrumb goes: %v, asked for %+v", alive, err, m.asked)
		}
	}
}
