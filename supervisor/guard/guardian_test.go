package guard

import (
	"errors"
	"slices"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// P2: what is not proved dead is not released, and the session is not closed for it.
func TestReleaseOfAnUnprovedTreeIsWithheld(t *testing.T) {
	good, bad := &mortal{dies: true}, &mortal{}
	p := guarding(t, Config{}, time.Hour, good, bad)
	now := 10 * time.Second
	p.turn(now, Events{Orphaned: true})
	if next, _ := p.turn(now+CloseAnyway-1, Events{}); next > now+CloseAnyway || len(p.closing) > 0 {
		t.Fatalf("closed with a tree alive, again at %v", next)
	}
	now += CloseAnyway
	p.turn(now, Events{})
	if len(p.closing) != 1 || p.closing[0].All || len(p.closing[0].Releases) != 1 || string(p.closing[0].Releases[0]) != "a" {
		t.Fatalf("%+v", p.closing)
	}
	p.turn(now, p.closed())
	now += time.Minute
	if _, over := p.turn(now, Events{}); len(p.closing) > 1 || over {
		t.Fatal("given up, or told again what was told")
	}
	bad.dies = true
	p.turn(now, Events{})
	if len(p.closing) != 2 || !p.closing[1].All || len(p.closing[1].Releases) != 2 {
		t.Fatalf("%+v", p.closing)
	}
	if _, over := p.turn(now, Events{}); over {
		t.Fatal("it leaves with a closing under way")
	}
	if _, over := p.turn(now, p.closed()); !over || !good.removed || !bad.removed || !good.shut {
		t.Fatal("not settled")
	}
}

// P2: a supervisor that dies while it tells a new guardian everything leaves it with a lease, and without the trees.
func TestAGuardianThatWasNotToldEverythingClosesNoSession(t *testing.T) {
	lease := []Message{{Op: OpBegin, Epoch: 1, Ticket: []byte("t")}, {Op: OpExtend, Epoch: 1, Deadline: time.Hour}}
	lost := Message{Op: OpTree, Epoch: 1, Tree: 1, Box: &Ref{Pid: 9}}
	bare := Message{Op: OpTree, Epoch: 1, Tree: 1}
	part := Message{Op: OpJoin, Epoch: 1, Tree: 1, Box: &Ref{Pid: 9}}
	end := Message{Op: OpPing, OK: true}
	for name, c := range map[string]struct {
		told   []Message
		closes bool
	}{
		"in the midst": {lease, false},
		"blind":        {append(slices.Clone(lease), lost, end), false},
		"blind to one": {append(slices.Clone(lease), bare, part, end), false},
		"everything":   {append(slices.Clone(lease), end), true},
	} {
		p := newPuppet(Config{})
		for _, m := range c.told {
			p.Hear(0, &m)
		}
		if p.turn(0, Events{Orphaned: true}); len(p.closing) > 0 != c.closes {
			t.Errorf("%s: %+v", name, p.closing)
		}
	}
}

func TestSecondGuardianLeavesTheClosingToTheFirst(t *testing.T) {
	now := 10 * time.Second
	p := guarding(t, Config{Index: 1, Grace: time.Second}, now, &mortal{dies: true})
	if next, _ := p.turn(now, Events{}); next != now+CloseHeadStart || len(p.closing) > 0 {
		t.Fatalf("it closes at once, or at %v", next)
	}
	p.turn(now, Events{TwinGone: true})
	if len(p.closing) != 1 {
		t.Fatal("the other one is gone, and it does not close")
	}
}

// P4: a guardian does not watch alone for longer than it was told.
func TestAGuardianWhoseTwinIsNotReplacedEndsAll(t *testing.T) {
	b := &mortal{}
	p := guarding(t, Config{Grace: time.Second}, time.Hour, b)
	if next, _ := p.turn(time.Minute, Events{TwinGone: true}); next != time.Minute+time.Second || b.struck > 0 {
		t.Fatalf("struck %d times, again at %v", b.struck, next)
	}
	must.OK(t, p.hear(time.Minute, Message{Op: OpTwin}))
	if p.turn(time.Minute+2*time.Second, Events{}); b.struck > 0 {
		t.Fatal("struck though the twin was replaced")
	}
	p.turn(2*time.Minute, Events{TwinGone: true})
	if p.turn(2*time.Minute+time.Second, Events{TwinGone: true}); b.struck == 0 {
		t.Fatal("it watches alone for ever")
	}
}

// P3: no message, however it got delayed, brings a lease back.
func TestEndedLeaseIsNeverRevived(t *testing.T) {
	b := &mortal{}
	p := guarding(t, Config{}, time.Second, b)
	for _, m := range []Message{
		{Op: OpTree, Epoch: 1, Tree: 9}, // though no timer has been handled
		{Op: OpExtend, Epoch: 1, Deadline: time.Hour},
		{Op: OpJoin, Epoch: 1, Tree: 0, Box: &Ref{Pid: 1}},
		{Op: OpArm, Epoch: 1, Tree: 0},
	} {
		if err := p.hear(time.Second, m); !errors.Is(err, ErrLeaseEnded) {
			t.Errorf("%s after the deadline: %v", m.Op, err)
		}
	}
	if b.struck == 0 {
		t.Error("the lease was not ended")
	}
	if err := p.hear(time.Second, Message{Op: OpBegin, Epoch: 1}); err == nil {
		t.Error("an epoch began twice")
	}
	for _, m := range []Message{{Op: OpBegin, Epoch: 2}, {Op: OpTree, Epoch: 2, Tree: 7}} {
		must.OK(t, p.hear(time.Second, m))
	}
	if err := p.hear(time.Second, Message{Op: OpJoin, Epoch: 2, Tree: 7, Box: &Ref{Pid: 1}}); !errors.Is(err, ErrNoLease) {
		t.Errorf("something alive before a lease: %v", err)
	}
}

// P7: a guardian that was stopped, and reads of a deadline after it, has read all that was sent before it kills.
func TestADeadlineThatWasMovedInTimeAndIsReadLateCounts(t *testing.T) {
	b := &mortal{}
	p := guarding(t, Config{}, time.Minute, b)
	late := time.Hour
	must.OK(t, p.hear(late, Message{Op: OpExtend, Epoch: 1, Deadline: late + time.Minute}))
	if next, _ := p.turn(late, Events{}); b.struck > 0 || next != late+time.Minute {
		t.Errorf("struck %d times, again at %v", b.struck, next)
	}
}

// P2: a supervisor that finishes an epoch with trees in it has forgotten something.
func TestFinishWithTreesLeftKillsThem(t *testing.T) {
	b := &mortal{}
	p := guarding(t, Config{}, time.Hour, b)
	must.OK(t, p.hear(0, Message{Op: OpFinish, Epoch: 1}))
	if p.turn(0, Events{}); b.struck == 0 || len(p.leases) == 0 {
		t.Error("forgotten alive")
	}
}

// P3: the last of many trees is told to die before anything is looked at of another, and what is held before any container.
func TestTheFirstOrdersOfDeathComeBeforeAnyLook(t *testing.T) {
	var told []*mortal
	boxes := []*mortal{{waits: true}, {}, {waits: true}, {}}
	for _, b := range boxes {
		b.order = func() {
			for _, other := range boxes {
				if other.looked > 0 {
					t.Error("something was looked at before all were told")
				}
			}
			told = append(told, b)
		}
	}
	p := guarding(t, Config{}, time.Second, boxes...)
	p.turn(time.Second, Events{})
	if want := []*mortal{boxes[1], boxes[3], boxes[0], boxes[2]}; !slices.Equal(told, want) {
		t.Errorf("told in the order %v", told)
	}
	fresh := guarding(t, Config{}, time.Second, &mortal{}, &mortal{}, &mortal{})
	if cost := testing.AllocsPerRun(1, func() { fresh.Turn(time.Second, Events{}) }); cost > 10 {
		t.Errorf("it takes %v allocations", cost)
	}
}

// What was over when a guardian first heard of it is all known to it before it ends: nothing is taken for dead unseen.
func TestGuardianLearnsOfATreeThatOutlivedItsLease(t *testing.T) {
	p := newPuppet(Config{})
	ref, b := Ref{Pid: 1}, &mortal{}
	p.boxes[ref] = b
	for _, m := range []Message{
		{Op: OpBegin, Epoch: 1, Deadline: 1, OK: true}, {Op: OpTree, Epoch: 1, Tree: 1}, {Op: OpJoin, Epoch: 1, Tree: 1, Box: &ref},
		{Op: OpArm, Epoch: 1, Tree: 1, Grace: 1}, {Op: OpEnd, Epoch: 1},
	} {
		if err := p.hear(time.Hour, m); err != nil {
			t.Fatalf("%s: %v", m.Op, err)
		}
		p.turn(time.Hour, Events{})
	}
	if limit, bound := p.leases.limit(); !bound || limit > time.Hour || b.struck == 0 {
		t.Errorf("bound: %v, struck %d times", bound, b.struck)
	}
}

func TestRefusalsKeepTheirMeaning(t *testing.T) {
	for _, err := range []error{ErrLeaseEnded, ErrNoLease} {
		if got := refuse(&Message{}, err).Err(); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	if got := refuse(&Message{Op: OpTree, Tree: 3}, errors.New("no room")); got.Tree != 3 || got.Err().Error() != "no room" {
		t.Errorf("%+v", got)
	}
}

// What the guardians did is told once: by the first, or by the second if the first was gone.
func TestDeedsAreToldOnce(t *testing.T) {
	now := 10 * time.Second
	for name, c := range map[string]struct {
		index    int
		before   Events // the supervisor's end
		tells    bool
		finished bool
	}{
		"first":              {tells: true},
		"second":             {index: 1},
		"second, left alone": {index: 1, before: Events{TwinGone: true}, tells: true},
		"a stop in order":    {finished: true},
	} {
		ran, idle := &mortal{dies: true}, &mortal{dies: true}
		p := guarding(t, Config{Index: c.index, Grace: time.Minute}, time.Hour, idle)
		p.boxes[Ref{Pid: 7}], p.boxes[Ref{Pid: 8}] = &mortal{dies: true}, ran
		for _, m := range []Message{
			{Op: OpTree, Epoch: 1, Tree: 5, Name: "web", Box: &Ref{Pid: 7}}, {Op: OpJoin, Epoch: 1, Tree: 5, Box: &Ref{Pid: 8}},
		} {
			must.OK(t, p.hear(0, m))
		}
		p.turn(now, c.before)
		if c.finished {
			for _, m := range []Message{{Op: OpDrop, Epoch: 1, Tree: 5}, {Op: OpDrop, Epoch: 1}, {Op: OpFinish, Epoch: 1}} {
				must.OK(t, p.hear(now, m))
			}
		}
		ran.dies = false
		p.turn(now, Events{Orphaned: true})
		ran.dies = true
		p.turn(now+30*time.Millisecond, Events{})
		over := c.finished
		if !over {
			_, over = p.turn(now+40*time.Millisecond, Events{Closed: p.closed().Closed, TwinGone: true})
		}
		d, tells := p.Deeds()
		if !over || tells != c.tells {
			t.Errorf("%s: over %v, tells %v", name, over, tells)
		}
		if !c.finished && (!slices.Equal(d.Killed, []string{"web"}) || d.Took != 30*time.Millisecond || d.Closed != 1 || d.Why != supervisorGone) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// P2: a lock is released once all trees that are for it are settled: the copy's, and that of what promoted it.
func TestALockIsReleasedWithTheLastTreeThatIsForIt(t *testing.T) {
	copied, orders := &mortal{dies: true}, &mortal{}
	p := guarding(t, Config{}, time.Hour, copied, orders)
	p.leases.tree(1).znodes = p.leases.tree(0).znodes
	now := 10 * time.Second
	p.turn(now, Events{Orphaned: true})
	now += CloseAnyway
	p.turn(now, Events{})
	for _, c := range p.closing {
		if len(c.Releases) > 0 || c.All {
			t.Fatalf("%+v", c)
		}
	}
	if len(p.closing) > 0 {
		p.turn(now, p.closed())
	}
	orders.dies = true
	p.turn(now+time.Second, Events{})
	if last := p.closing[len(p.closing)-1]; !last.All || len(last.Releases) != 1 || string(last.Releases[0]) != "a" {
		t.Fatalf("%+v", last)
	}
}

// P2: a second tree of the same number would hide the processes of the first.
func TestATreeIsTakenInOnce(t *testing.T) {
	b := &mortal{}
	p := guarding(t, Config{}, time.Second, b)
	must.OK(t, p.hear(0, Message{Op: OpBegin, Epoch: 2}))
	for epoch := uint64(1); epoch <= 2; epoch++ {
		if err := p.hear(0, Message{Op: OpTree, Epoch: epoch, Tree: 0}); err == nil {
			t.Errorf("under lease %d it takes in another tree of this number", epoch)
		}
	}
	if p.turn(time.Second, Events{}); b.struck == 0 {
		t.Errorf("the first one was struck %d times", b.struck)
	}
}
