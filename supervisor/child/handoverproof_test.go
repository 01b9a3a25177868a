package child

import (
	"errors"
	"os"
	"testing"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/testbed/must"
)

// found is a box that a look finds so.
type found struct {
	box.Box
	dead bool
	err  error
}

func (f found) Dead() (bool, error) { return f.dead, f.err }

// P2: the next image of a supervisor is not told of a start whose stub was reaped, if nothing is left of it. The stub's end is no proof of
// that: what was forked below it may live, and who does not know of it would call the tree dead.
func TestAStartWithoutItsStubIsLeftOutOfAHandoverOnlyIfItIsDead(t *testing.T) {
	reaped, err := os.Open(os.DevNull)
	must.OK(t, err)
	must.OK(t, reaped.Close())
	for _, c := range []struct {
		found
		want error
	}{
		{found{dead: true}, nil},
		{found{}, ErrBusy},
		{found{err: box.ErrUnproved}, ErrBusy},
		{found{dead: true, err: box.ErrUnproved}, ErrBusy},
	} {
		tree := &Tree{}
		one := newPart(tree, c.found, &stub{Stub: &inside.Stub{Link: wire.Link{File: reaped}}})
		one.proc = &Process{tree: tree, part: one}
		tree.parts = []*part{one}
		h := &handing{}
		carried, err := tree.carry(h, guard.HandoverTree{})
		h.close()
		if !errors.Is(err, c.want) || len(carried.Parts) > 0 {
			t.Errorf("dead %v, %v: carries %v, %v", c.dead, c.err, carried.Parts, err)
		}
	}
}
