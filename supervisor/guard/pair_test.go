package guard

import (
	"errors"
	"slices"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// bureau is a supervisor whose hands only note what they are told.
type bureau struct {
	*Guardians
	t       *testing.T
	now     time.Duration
	numbers [2]uint64
	sent    [2][]*Message
	started []int
	killed  []int
	said    []News
	struck  int
	done    []string // strikes, kills and words, in their order
}

func newBureau(t *testing.T) *bureau {
	t.Helper()
	b := &bureau{t: t, now: time.Hour}
	b.Guardians = NewGuardians(b)
	b.numbers = b.Present(b.now, [2]uint64{})
	must.OK(t, errors.Join(b.State.Begin(1, []byte("t")), b.State.Extend(b.now, 1, 2*b.now)))
	return b
}

func (b *bureau) Send(at int, m *Message) { b.sent[at] = append(b.sent[at], m) }
func (b *bureau) Start(at int, number uint64) {
	b.started, b.numbers[at] = append(b.started, at), number
}
func (b *bureau) Kill(at int, _ error) {
	b.killed, b.done = append(b.killed, at), append(b.done, "kill")
}
func (b *bureau) KillNow() { b.struck, b.done = b.struck+1, append(b.done, "strike") }
func (b *bureau) Say(what News, _ int, _ error) {
	b.said, b.done = append(b.said, what), append(b.done, "say")
}

// forgets what the hands have noted.
func (b *bureau) forgets() {
	b.sent, b.started, b.killed, b.said, b.struck, b.done = [2][]*Message{}, nil, nil, nil, 0, nil
}

// acks has a guardian answer everything that it was sent.
func (b *bureau) acks(at int) {
	b.t.Helper()
	last := uint64(0)
	for _, m := range b.sent[at] {
		last = max(last, m.Seq)
	}
	b.sent[at] = nil
	b.Heard(b.now, at, b.numbers[at], &Message{Op: OpAck, Seq: last})
}

func (b *bureau) falls(at int)             { b.Gone(b.now, at, b.numbers[at]) }
func (b *bureau) begins(at int) bool       { return b.Began(b.now, at, b.numbers[at], nil) }
func (b *bureau) stands(d time.Duration)   { b.now += d; b.Due(b.now) }
func (b *bureau) cause(t *testing.T) error { t.Helper(); return b.State.Cause(1) }

// passes lets time go by, and does what is due meanwhile.
func (b *bureau) passes(d time.Duration) {
	end := b.now + d
	for b.now < end {
		next := b.Next()
		if next <= b.now || next > end {
			next = end
		}
		b.now = next
		b.Due(b.now)
	}
}

// plants makes a tree that both guardians know.
func (b *bureau) plants() *Tree {
	b.t.Helper()
	tree, seq, err := b.State.AddTree(b.now, 1, TreeSpec{Release: []byte("r"), Ref: func() *Ref { return &Ref{Path: "here"} }})
	must.OK(b.t, err)
	b.acks(0)
	b.acks(1)
	if done, err := b.Questions.Answered(seq); !done || err != nil {
		b.t.Fatal(done, err)
	}
	return tree
}

func TestAGuardianThatIsGoneIsReplacedAndTheNextKnowsEverything(t *testing.T) {
	b := newBureau(t)
	b.State.Feed(b.now, time.Second, "device")
	tree := b.plants()
	if _, err := tree.Join(b.now, Ref{Pid: 7}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Arm(b.now, time.Second); err != nil {
		t.Fatal(err)
	}
	b.sent = [2][]*Message{}
	b.falls(0)
	if !slices.Equal(b.started, []int{0}) || !b.begins(0) {
		t.Fatal("nobody takes its place")
	}
	var ops []Op
	for _, m := range b.sent[0] {
		if ops = append(ops, m.Op); m.Op != OpPing && m.Seq != 0 {
			t.Errorf("%s has a number: it would acknowledge what follows", m.Op)
		}
	}
	if want := []Op{OpWatchdog, OpBegin, OpExtend, OpTree, OpJoin, OpArm, OpPing}; !slices.Equal(ops, want) {
		t.Fatalf("%v, want %v", ops, want)
	}
	b.acks(0)
	if len(b.said) > 0 {
		t.Fatal("replaced, though the other one has not shown that it is there")
	}
	b.acks(1)
	if !slices.Equal(b.said, []News{Replaced}) || b.cause(t) != nil || b.struck > 0 {
		t.Fatal(b.said, b.cause(t))
	}
}

// A new guardian is told that what is over is over, only after it knows all of it.
func TestANewGuardianIsToldLastThatALeaseIsOver(t *testing.T) {
	b := newBureau(t)
	tree := b.plants()
	tree.armed, tree.after = true, time.Second
	b.passes(3 * time.Hour)
	if err := tree.MayStart(b.now); !errors.Is(err, ErrLeaseEnded) {
		t.Fatal(err)
	}
	all := b.State.replay()
	var ops []Op
	for _, m := range all {
		ops = append(ops, m.Op)
	}
	if want := []Op{OpBegin, OpTree, OpArm, OpEnd}; !slices.Equal(ops, want) {
		t.Fatalf("%v, want %v", ops, want)
	}
	if all[0].Deadline == 0 || !all[0].OK || string(all[0].Ticket) != "t" {
		t.Errorf("%+v", all[0])
	}
}

// P4: two that are killed at once die a while apart; the second is not taken for alive meanwhile.
func TestTheTwinHasToAnswerBeforeAReplacementCounts(t *testing.T) {
	for name, c := range map[string]func(b *bureau){
		"it is silent": func(b *bureau) { b.passes(AckLimit + secondLook) },
		"it falls":     func(b *bureau) { b.falls(1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBureau(t)
			b.plants()
			b.falls(0)
			b.begins(0)
			b.acks(0)
			c(b)
			if !errors.Is(b.cause(t), ErrGuardiansLost) || b.struck == 0 || !slices.Contains(b.said, BothLost) {
				t.Fatal(b.said, b.cause(t))
			}
			b.sent = [2][]*Message{}
			if !b.begins(0) || !b.begins(1) {
				t.Fatal("no new pair")
			}
			b.acks(0)
			if b.acks(1); b.said[len(b.said)-1] != Anew {
				t.Fatal(b.said)
			}
		})
	}
}

// P4: a guardian that does not know of all that is in a tree is none; what was in the way of the first may be gone by the second.
func TestAGuardianThatCannotTakeATreeInIsNotSeated(t *testing.T) {
	for _, op := range []Op{OpTree, OpJoin} {
		b := newBureau(t)
		b.plants()
		b.falls(0)
		blind := func() {
			b.begins(0)
			b.Heard(b.now, 0, b.numbers[0], refuse(&Message{Op: op, Epoch: 1, Tree: 1}, errors.New("out of sight")))
		}
		blind()
		if b.cause(t) != nil || len(b.started) != 2 {
			t.Fatal(op, "no second one is tried", b.cause(t), b.started)
		}
		if blind(); !errors.Is(b.cause(t), ErrGuardiansLost) {
			t.Fatal(op, "it goes on")
		}
	}
}

func TestANewPairIsTriedAgainAndAgain(t *testing.T) {
	b := newBureau(t)
	b.falls(0)
	b.falls(1)
	pause := firstPause
	for range 10 {
		b.started = nil
		b.Began(b.now, 0, b.numbers[0], errors.New("no processes"))
		if b.begins(1) {
			t.Fatal("one alone is wanted")
		}
		if b.passes(pause - 1); len(b.started) > 0 {
			t.Fatalf("tried again before %v", pause)
		}
		if b.passes(1); len(b.started) != 2 {
			t.Fatal("not tried again")
		}
		pause = min(2*pause, longestPause)
	}
}

func TestAGuardianThatDoesNotAnswerIsKilled(t *testing.T) {
	b := newBureau(t)
	_, seq, err := b.State.AddTree(b.now, 1, TreeSpec{})
	must.OK(t, err)
	b.acks(0)
	if b.passes(AckLimit + secondLook - 1); len(b.killed) > 0 {
		t.Fatal("too soon")
	}
	if b.passes(1); !slices.Equal(b.killed, []int{1}) {
		t.Fatal(b.killed)
	}
	b.passes(giveUp)
	if done, err := b.Questions.Answered(seq); !done || err == nil {
		t.Fatal(done, err)
	}
}

// A machine that is moved, or copied, stands still for seconds, guardians too. What they were asked just before is no sign of their silence.
func TestAMachineThatStandsStillCostsNoGuardian(t *testing.T) {
	for name, c := range map[string]struct {
		asks func(b *bureau)
		all  bool
	}{
		"a question": {func(b *bureau) { _, _, _ = b.State.AddTree(b.now, 1, TreeSpec{}) }, true},
		"a ping":     {func(b *bureau) { b.plants(); b.passes(PingEvery) }, true},
		"the twin":   {func(b *bureau) { b.plants(); b.falls(0); b.begins(0); b.acks(0); b.forgets() }, false},
	} {
		for _, long := range []time.Duration{PingEvery, PingEvery + 100*time.Millisecond, time.Minute} {
			b := newBureau(t)
			c.asks(b)
			open := len(b.Questions.open)
			if b.stands(long); len(b.killed) > 0 || b.struck > 0 || len(b.Questions.open) != open {
				t.Fatalf("%s, %v: killed %v, of %d questions %d are open", name, long, b.killed, open, len(b.Questions.open))
			}
			if b.passes(secondLook - 1); len(b.killed) > 0 || b.struck > 0 {
				t.Fatalf("%s, %v: killed too soon: %v", name, long, b.killed)
			}
			if b.passes(1); len(b.killed) == 0 {
				t.Errorf("%s, %v: what is silent for ever is never killed", name, long)
			}
			if c.all != (b.struck == 0) {
				t.Errorf("%s, %v: %d strikes", name, long, b.struck)
			}
		}
	}
}

func TestAGuardianThatSleepsOverAPingIsKilled(t *testing.T) {
	b := newBureau(t)
	b.passes(PingEvery)
	b.acks(0)
	if b.passes(PingEvery + secondLook - 1); len(b.killed) > 0 {
		t.Fatal("too soon")
	}
	if b.passes(1); !slices.Equal(b.killed, []int{1}) {
		t.Fatal(b.killed)
	}
}

// What is heard of, or from, a guardian that is not in its place any more changes nothing.
func TestWordsOfAPreviousGuardianAreNotHeard(t *testing.T) {
	b := newBureau(t)
	previous := b.numbers[0]
	b.falls(0)
	b.begins(0)
	b.Heard(b.now, 0, previous, &Message{Op: OpEnded, Epoch: 1})
	b.Heard(b.now, 0, previous, &Message{Op: OpAck, Seq: 1 << 40})
	b.Gone(b.now, 0, previous)
	if b.Began(b.now, 0, previous, nil) || b.cause(t) != nil || len(b.started) != 1 || b.slots[0].acked > 0 {
		t.Fatal(b.cause(t), b.started, b.slots)
	}
}

// P2: a start that is under way when everything seen is dead may still come.
func TestAStartThatIsUnderWayLeavesSomethingUnseen(t *testing.T) {
	b := newBureau(t)
	tree := b.plants()
	must.OK(t, tree.MayStart(b.now))
	tree.beginKill(false)
	if err := tree.MayStart(b.now); !errors.Is(err, ErrTreeEnded) {
		t.Errorf("started while it is killed: %v", err)
	}
	if _, err := tree.Join(b.now, Ref{Pid: 1}, nil); !errors.Is(err, ErrTreeEnded) {
		t.Errorf("what was under way passes its gate: %v", err)
	}
	tree.Started()
	tree.endKill()
	if err := tree.MayStart(b.now); err != nil {
		t.Errorf("a tree that was killed is of use again: %v", err)
	}
	tree.beginKill(true)
	tree.endKill()
	if err := tree.MayStart(b.now); !errors.Is(err, ErrTreeEnded) {
		t.Errorf("started after its end: %v", err)
	}
	if tree.markDead(); !tree.beginKill(true) {
		t.Error("its end is not remembered")
	}
}

// P3: whoever asks first after the deadline finds the lease over, whether or not a guardian has said so.
func TestNothingIsDoneUnderALeaseThatRanOut(t *testing.T) {
	b := newBureau(t)
	tree := b.plants()
	b.now *= 3
	if err := b.State.Extend(b.now, 1, 2*b.now); !errors.Is(err, ErrLeaseEnded) {
		t.Errorf("extended: %v", err)
	}
	if err := tree.MayStart(b.now); !errors.Is(err, ErrLeaseEnded) {
		t.Errorf("started: %v", err)
	}
	if _, err := tree.Join(b.now, Ref{}, nil); !errors.Is(err, ErrLeaseEnded) {
		t.Errorf("joined: %v", err)
	}
	if _, err := tree.Arm(b.now, time.Second); !errors.Is(err, ErrLeaseEnded) {
		t.Errorf("armed: %v", err)
	}
	select {
	case <-b.State.Over(1):
	default:
		t.Error("it is not over")
	}
	if err := b.State.Cause(1); !errors.Is(err, ErrLeaseEnded) {
		t.Error(err)
	}
}

func TestOnlyWhatIsAtRestIsHandedOver(t *testing.T) {
	b := newBureau(t)
	tree := b.plants()
	for name, c := range map[string]struct{ begin, end func() }{
		"a start":    {func() { tree.starting++ }, func() { tree.starting-- }},
		"a kill":     {func() { tree.beginKill(false) }, func() { tree.endKill() }},
		"an epoch":   {func() { _ = b.State.Begin(2, nil) }, func() { _ = b.State.Finish(2) }},
		"a new twin": {func() { b.falls(0); b.begins(0); b.acks(0) }, func() { b.acks(1) }},
	} {
		c.begin()
		if _, err := b.HandOver(b.now, map[uint64]int{1: 1}); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
		c.end()
	}
	l, err := b.HandOver(b.now, map[uint64]int{1: 1})
	must.OK(t, err)
	next := &bureau{t: t, now: b.now}
	next.Guardians, next.numbers = Adopt(b.now, next, l)
	must.Report(t, next.State.Leases()[0].Trees()[0].MayStart(next.now))
	if again, err := next.HandOver(next.now, map[uint64]int{1: 0}); !errors.Is(err, ErrBusy) {
		t.Errorf("%+v", again)
	}
}

// P4: as long as trees live, somebody watches over them. No log is waited for before they are struck.
func TestTreesAreStruckBeforeTheLastGuardianIsKilled(t *testing.T) {
	b := newBureau(t)
	b.plants()
	b.falls(0)
	b.forgets()
	b.Began(b.now, 0, b.numbers[0], errors.New("no processes"))
	if len(b.done) < 3 || b.done[0] != "strike" || b.done[len(b.done)-1] != "say" || slices.Index(b.done, "say") < slices.Index(b.done, "kill") {
		t.Fatal(b.done)
	}
}
