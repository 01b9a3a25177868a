package guard

import (
	"errors"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// A follower's lease goes along, and its tree moves between both in the next image, too.
func TestEachLeaseIsHandedOver(t *testing.T) {
	b := newBureau(t)
	b.plants()
	must.OK(t, b.State.Begin(7, nil))
	must.OK(t, b.State.Extend(b.now, 7, b.now+time.Hour))
	follower, _, err := b.State.AddTree(b.now, 7, TreeSpec{Name: "copy"})
	must.OK(t, err)
	for _, trees := range []map[uint64]int{{1: 1}, {7: 1}, {1: 1, 7: 0}, {1: 2, 7: 1}, {1: 1, 8: 1}, {1: 1, 7: 1, 8: 0}} {
		if _, err := b.HandOver(b.now, trees); !errors.Is(err, ErrBusy) {
			t.Errorf("%v: %v", trees, err)
		}
	}
	l, err := b.HandOver(b.now, map[uint64]int{1: 1, 7: 1})
	must.OK(t, err)
	next := &bureau{t: t, now: b.now}
	next.Guardians, next.numbers = Adopt(b.now, next, l)
	all := next.State.Leases()
	if len(all) != 2 || all[1].Number != 7 || all[1].Deadline != b.now+time.Hour || all[1].Trees()[0].Number != follower.Number {
		t.Fatalf("%+v", all)
	}
	_, err = all[1].Trees()[0].Move(next.now, 1, nil)
	must.OK(t, err)
	_, err = next.HandOver(next.now, map[uint64]int{1: 2, 7: 0})
	must.OK(t, err)
	all[1].over(ErrLeaseEnded)
	if _, err := next.HandOver(next.now, map[uint64]int{1: 2, 7: 0}); !errors.Is(err, ErrLeaseEnded) {
		t.Errorf("with a lease that is over: %v", err)
	}
}
