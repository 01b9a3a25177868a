package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"understudy/election"
	"understudy/supervisor/child/box"
	"understudy/supervisor/service/role"
)

// P2: a service that was removed is not forgotten as long as something of it may be alive, in whatever session.
func TestAServiceThatLeftSomethingIsNotForgotten(t *testing.T) {
	for name, left := range map[string]func(*Service){
		"its own tree":                    func(v *Service) { v.unprovedTree.tree = &endingTree{} },
		"a former tree":                   func(v *Service) { v.unprovedTree.seen = "pid 7" },
		"a term that was to be handed on": func(v *Service) { v.carried = &CarriedTerm{} },
		"nothing of them":                 func(*Service) {},
	} {
		v := made(t, Conf{}, nil)
		left(v)
		if v.Gone() {
			t.Errorf("%s: gone, and not removed", name)
		}
		v.Remove()
		if gone := v.Gone(); gone != (name == "nothing of them") {
			t.Errorf("%s: gone: %v", name, gone)
		}
		if alive := v.Unproved(); (alive != nil) != (name == "its own tree") || alive != nil && !errors.Is(alive, ErrUnproved) {
			t.Errorf("%s: alive: %v", name, alive)
		}
	}
}

// A session must not be closed if a tree of its own is not proved dead. A later session can be closed.
func TestOnlyTheSessionOfAnUnprovedTreeIsLeftToExpire(t *testing.T) {
	for epoch, kept := range map[uint64]bool{1: false, 2: true} {
		synctest.Test(t, func(t *testing.T) {
			v := made(t, Conf{}, nil)
			v.unprovedTree = unprovedTree{tree: &endingTree{err: box.ErrUnproved}, epoch: epoch}
			ctx, end := context.WithCancel(t.Context())
			end()
			err := v.Serve(ctx, Session{Session: &election.Session{}, Epoch: 2, Leave: ctx.Done()})
			if errors.Is(err, ErrUnproved) != kept || !kept && err != nil || v.Unproved() == nil {
				t.Errorf("of session %d: %v, %v", epoch, err, v.Unproved())
			}
		})
	}
}

// Once a tree is dead at last, the service does not say any longer that it is alive.
func TestNothingIsSaidOfATreeThatIsDeadAtLast(t *testing.T) {
	v := made(t, Conf{}, nil)
	v.unprovedTree = unprovedTree{tree: &endingTree{}, epoch: 1, seen: "pid 7"}
	over, end := context.WithCancel(t.Context())
	end() // nothing can be said in ZooKeeper any more
	of := &leftovers{v: v, s: Session{Session: &election.Session{}, Epoch: 2, Leave: over.Done()}}
	if e := of.endLeftovers(over, over); e.Kind != role.Proved || v.unprovedTree.seen != "" || v.unprovedTree.tree != nil {
		t.Errorf("%v, %+v", e.Kind, v.unprovedTree)
	}
}
