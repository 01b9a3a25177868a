package service

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/child/box"
	"understudy/supervisor/unit"
)

// Another node that holds the lock may have a tree ended: its term ends as well, and it is dead once its effects are undone.
func TestADeathThatAnotherNodeAsksForEndsTheTerm(t *testing.T) {
	errLives := errors.New("it lives")
	for name, c := range map[string]struct {
		end  error
		owes int // that often
		dead bool
	}{
		"dead": {dead: true}, "to be undone": {owes: 3, dead: true}, "never undone": {owes: 1 << 30}, "alive": {end: errLives},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var stopped error
				tree := &endingTree{err: c.end}
				one := &OwnTree{tree: tree, end: func(why error) { stopped = why }, pendingEffects: func() []string {
					if c.owes--; c.owes >= 0 {
						return []string{"vip"}
					}
					return nil
				}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := one.Kill(ctx, "b", 2)
				if (err == nil) != c.dead || tree.ended != 1 || !errors.Is(stopped, election.ErrLost) {
					t.Errorf("%v, ended %d times, the term was ended by %v", err, tree.ended, stopped)
				}
				if undone := !errors.As(err, new(*fencing.NotUndone)); undone == (name == "never undone") {
					t.Errorf("undone: %v", err)
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
		m.add(&OwnTree{ID: id(i)})
	}
	if m.find(id(2)) != nil || m.find(id(3)) == nil || m.find(id(treesKept+2)) == nil || len(m.all) != treesKept {
		t.Errorf("%d are kept", len(m.all))
	}
}

// An agent may be asked for a death before the term goes on: what the oneshots did, an address say, is still there then.
func TestATreeThatIsCarriedIsKnownFromTheStart(t *testing.T) {
	v := made(t, Conf{}, nil)
	id := json.RawMessage(`{"tree":1}`)
	v.Remember(CarriedService{Name: "db", PendingUndos: []unit.PendingUndo{{Name: "vip"}}, Term: &CarriedTerm{Tree: id}})
	first := v.Tree(id)
	if first == nil || len(first.pendingEffects()) == 0 {
		t.Fatalf("known of it: %+v", first)
	}
	again := v.testStay(t.Context(), Session{}, &endingTree{})
	again.TreeMade(func(error) {})
	if found := v.Tree(id); found == nil || found == first {
		t.Error("its former stay is found")
	}
}

// A claimant looks at its own machine, for the tree and for the process that was seen alive of it.
func TestWhoClaimsLooksAtItsOwnMachine(t *testing.T) {
	m, tree := &shown{}, json.RawMessage(`{}`)
	v := made(t, Conf{}, func(n *LocalNode) { n.Machine = m })
	for alive, want := range map[error]fencing.Liveness{nil: fencing.Dead, box.ErrUnproved: fencing.Alive, box.ErrMayLive: fencing.Unknown} {
		m.alive = alive
		seen := fencing.ProcessID{Pid: 7, Start: 70}
		verdict, _, _ := v.breadcrumb.witness().Prove(t.Context(), fencing.Target{Service: "db", Node: "a", Machine: "m1", Boot: "b1", Tree: tree, Seen: seen})
		if verdict != want || m.asked != seen || m.tree != string(tree) {
			t.Errorf("%v: %v, asked for %+v of %s", alive, verdict, m.asked, m.tree)
		}
		if err := v.breadcrumb.outlasted(tree)(election.Leftover{Pid: 8, Start: 80}); !errors.Is(err, alive) || m.asked != (fencing.ProcessID{Pid: 8, Start: 80}) {
			t.Errorf("%v: before its breadcrumb goes: %v, asked for %+v", alive, err, m.asked)
		}
	}
}
