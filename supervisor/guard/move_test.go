package guard

import (
	"errors"
	"slices"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// P3: a follower that is about to be promoted ends with the session's lease from then on, and with no other.
func TestATreeThatHasMovedEndsWithItsNewLease(t *testing.T) {
	b := &mortal{dies: true}
	p := guarding(t, Config{}, time.Hour, b)
	for _, m := range []Message{
		{Op: OpBegin, Epoch: 2, Ticket: []byte("session")}, {Op: OpExtend, Epoch: 2, Deadline: time.Minute},
		{Op: OpMove, Epoch: 2, Tree: 0, Release: []byte("lock")},
	} {
		if err := p.hear(time.Second, m); err != nil {
			t.Fatal(m.Op, err)
		}
	}
	if err := p.hear(time.Second, Message{Op: OpFinish, Epoch: 1}); err != nil || b.struck > 0 {
		t.Fatal("its previous lease counts:", err, b.struck)
	}
	p.turn(time.Minute, Events{})
	if b.struck == 0 {
		t.Fatal("it outlives its lease")
	}
	p.turn(time.Minute, Events{Orphaned: true})
	if len(p.closing) != 1 || string(p.closing[0].Ticket) != "session" || !p.closing[0].All || string(p.closing[0].Releases[0]) != "lock" {
		t.Fatalf("%+v", p.closing)
	}
}

// P2: the session is not closed while a promoted program is alive.
func TestATreeThatHasMovedHoldsItsSession(t *testing.T) {
	b := &mortal{}
	p := guarding(t, Config{}, time.Hour, b)
	for _, m := range []Message{
		{Op: OpBegin, Epoch: 2, Ticket: []byte("session")}, {Op: OpExtend, Epoch: 2, Deadline: time.Minute}, {Op: OpMove, Epoch: 2, Tree: 0, Release: []byte("lock")},
	} {
		if err := p.hear(time.Second, m); err != nil {
			t.Fatal(m.Op, err)
		}
	}
	now := 2 * time.Second
	p.turn(now, Events{Orphaned: true})
	p.turn(now+CloseAnyway, Events{})
	if i := slices.IndexFunc(p.closing, func(c Closing) bool { return c.Epoch == 2 && (c.All || len(c.Releases) > 0) }); i >= 0 {
		t.Fatalf("%+v", p.closing[i])
	}
}

// P3: what is over takes no tree in, and gives none away.
func TestATreeMovesOnlyFromALeaseToALease(t *testing.T) {
	for name, c := range map[string]struct {
		before []Message
		at     time.Duration
		want   error
	}{
		"to one that is over":      {[]Message{{Op: OpBegin, Epoch: 2}, {Op: OpExtend, Epoch: 2, Deadline: time.Minute}}, time.Minute, ErrLeaseEnded},
		"from one that is over":    {[]Message{{Op: OpBegin, Epoch: 2}, {Op: OpExtend, Epoch: 2, Deadline: 3 * time.Hour}}, 2 * time.Hour, ErrLeaseEnded},
		"from one that was ended":  {[]Message{{Op: OpBegin, Epoch: 2}, {Op: OpExtend, Epoch: 2, Deadline: time.Hour}, {Op: OpEnd, Epoch: 1}}, time.Second, ErrLeaseEnded},
		"to one that never began":  {nil, time.Second, ErrUnknownEpoch},
		"to one without any lease": {[]Message{{Op: OpBegin, Epoch: 2}}, time.Second, ErrNoLease},
	} {
		b := &mortal{}
		p := guarding(t, Config{}, 2*time.Hour, b)
		for _, m := range c.before {
			if err := p.hear(0, m); err != nil {
				t.Fatal(name, m.Op, err)
			}
		}
		err := p.hear(c.at, Message{Op: OpMove, Epoch: 2, Tree: 0})
		if err == nil || !errors.Is(err, c.want) && err.Error() != c.want.Error() {
			t.Errorf("%s: %v", name, err)
		}
		p.turn(3*time.Hour, Events{})
		if b.struck == 0 {
			t.Errorf("%s: the tree is lost", name)
		}
	}
}

// The State moves a tree only between leases that are not over; a new guardian learns it where it is.
func TestTheStateMovesATree(t *testing.T) {
	b := newBureau(t)
	tree := b.plants()
	must.OK(t, errors.Join(b.State.Begin(2, []byte("s"))))
	if _, err := tree.Move(b.now, 2, nil); !errors.Is(err, ErrNoLease) {
		t.Fatal(err)
	}
	must.OK(t, b.State.Extend(b.now, 2, b.now+time.Minute))
	seq, err := tree.Move(b.now, 2, []byte("lock"))
	must.OK(t, err)
	b.acks(0)
	if done, _ := b.Questions.Answered(seq); done {
		t.Fatal("one guardian is enough")
	}
	b.acks(1)
	if done, err := b.Questions.Answered(seq); !done || err != nil {
		t.Fatal(done, err)
	}
	must.OK(t, b.State.Finish(1))
	if err := b.State.Finish(2); err == nil {
		t.Fatal("its new lease is forgotten with it")
	}
	b.falls(0)
	if !b.begins(0) {
		t.Fatal("nobody takes its place")
	}
	i := slices.IndexFunc(b.sent[0], func(m *Message) bool { return m.Op == OpTree })
	if i < 0 || b.sent[0][i].Epoch != 2 || string(b.sent[0][i].Release) != "lock" {
		t.Fatalf("a new guardian is told %+v", b.sent[0])
	}
	if _, err := tree.Move(b.now+time.Hour, 2, nil); !errors.Is(err, ErrLeaseEnded) {
		t.Fatal(err)
	}
	tree.beginKill(true)
	must.OK(t, b.State.Begin(3, nil))
	must.OK(t, b.State.Extend(b.now, 3, b.now+time.Minute))
	if _, err := tree.Move(b.now, 3, nil); err == nil {
		t.Fatal("a tree that is being killed moves")
	}
}
