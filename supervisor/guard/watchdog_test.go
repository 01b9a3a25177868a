package guard

import (
	"testing"
	"time"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

// bowl is a guardian with a watchdog, and a tree under a lease for which it is armed.
func bowl(t *testing.T, timeout, deadline time.Duration, b *mortal) *puppet {
	t.Helper()
	p := guarding(t, Config{}, deadline, b)
	p.leases.lease(1).ticket = nil
	for _, m := range []Message{{Op: OpWatchdog, Grace: timeout}, {Op: OpArm, Epoch: 1, Tree: 0, Grace: 200 * time.Millisecond}} {
		must.OK(t, p.hear(0, m))
	}
	return p
}

// run lets the guardian take its turns as its own timer would have it, and returns when it fed.
func (p *puppet) run(t *testing.T, from, to time.Duration) []time.Duration {
	t.Helper()
	p.fed = nil
	for now := from; now < to; {
		next, over := p.turn(now, Events{})
		if next == 0 || next > to || over {
			break
		}
		if next <= now {
			t.Fatalf("at %v it wants to be woken at %v", now, next)
		}
		now = next
	}
	return p.fed
}

// P3: a lease that is not extended is fed for at most until a timeout before its session can end, and as late as that.
func TestLastFeedComesATimeoutBeforeTheSessionCanEnd(t *testing.T) {
	const timeout, start = 2 * time.Second, time.Hour
	deadline := start + 3100*time.Millisecond
	p := bowl(t, timeout, deadline, &mortal{})
	limit := deadline + 200*time.Millisecond
	fed := p.run(t, start, deadline)
	last := fed[len(fed)-1]
	if last+timeout > limit || last+timeout <= deadline {
		t.Errorf("the lease ends at %v, the session at %v: the reset comes at %v", deadline-start, limit-start, last+timeout-start)
	}
	for i := range fed[1:] {
		if fed[i+1]-fed[i] > timeout/3 {
			t.Errorf("fed only after %v", fed[i+1]-fed[i])
		}
	}
	// An extension in time is answered at once, however long nothing was fed.
	must.OK(t, p.hear(deadline, Message{Op: OpExtend, Epoch: 1, Deadline: limit + 3*time.Second}))
	if fed := p.run(t, deadline, deadline+1); len(fed) != 1 {
		t.Errorf("fed at %v", fed)
	}
}

// P2, P3: after the lease's end it is fed again only for trees that are proved dead.
func TestTreeThatDoesNotDieIsNotFedFor(t *testing.T) {
	const timeout, start = 2 * time.Second, time.Hour
	b := &mortal{}
	p := bowl(t, timeout, start+time.Second, b)
	p.turn(start+500*time.Millisecond, Events{})
	p.turn(start+time.Second, Events{Orphaned: true})
	if fed := p.run(t, start+time.Second, start+2*Hopeless); len(fed) > 0 {
		t.Fatalf("fed at %v", fed)
	}
	if len(p.leases) == 0 || len(p.parted) > 0 {
		t.Fatal("given up: the guardian would leave, and call the reset off")
	}
	b.dies = true
	if _, over := p.turn(start+2*Hopeless, Events{}); !over || len(p.parted) != 1 || !p.parted[0] {
		t.Fatalf("proved dead, and the guardian stays, or does not call the reset off: %v", p.parted)
	}
}

func TestTreeThatIsNotArmedIsFedFor(t *testing.T) {
	p := bowl(t, time.Second, time.Hour, &mortal{})
	p.leases.tree(0).armed = false
	if fed := p.run(t, 2*time.Hour, 2*time.Hour+3*time.Second); len(fed) < 12 {
		t.Fatalf("fed at %v", fed)
	}
}

// A guardian that lets go says so to the device, unless something that it is armed for may be alive.
func TestFarewellIsSaidOnlyWhenNothingIsAlive(t *testing.T) {
	for _, dead := range []bool{true, false} {
		p := bowl(t, time.Second, time.Hour, &mortal{dies: dead})
		p.turn(time.Hour, Events{})
		must.OK(t, p.hear(time.Hour, Message{Op: OpUnwatch}))
		if len(p.parted) != 1 || p.parted[0] != dead {
			t.Errorf("dead %v: %v", dead, p.parted)
		}
	}
}

// P3: a guardian that does not know all trees keeps no reset away, and calls none off: its supervisor died while it told it everything, or it
// could not take a tree in.
func TestAGuardianThatDoesNotKnowAllTreesLeavesTheResetToOthers(t *testing.T) {
	for name, told := range map[string][]Message{
		"not told":  {{Op: OpWatchdog, Grace: time.Second}, {Op: OpBegin, Epoch: 1}},
		"not taken": {{Op: OpWatchdog, Grace: time.Second}, {Op: OpBegin, Epoch: 1}, {Op: OpTree, Epoch: 1, Tree: 1, Box: &Ref{Pid: 1}}, {Op: OpPing, OK: true}},
	} {
		p := newPuppet(Config{})
		for _, m := range told {
			p.Hear(0, &m)
		}
		if fed := p.run(t, 0, time.Minute); len(fed) > 0 {
			t.Errorf("%s: it feeds %d times", name, len(fed))
		}
		if _, over := p.turn(time.Minute, Events{Orphaned: true}); !over || len(p.parted) != 1 || p.parted[0] {
			t.Errorf("%s: over %v, farewell %v", name, over, p.parted)
		}
	}
	p := newPuppet(Config{})
	for _, m := range []Message{{Op: OpWatchdog, Grace: time.Second}, {Op: OpBegin, Epoch: 1}, {Op: OpPing, OK: true}} {
		p.Hear(0, &m)
	}
	if fed := p.run(t, 0, time.Minute); len(fed) == 0 {
		t.Error("one that knows everything does not feed")
	}
	if p.turn(time.Minute, Events{Orphaned: true}); len(p.parted) != 1 || !p.parted[0] {
		t.Errorf("it calls no reset off: %v", p.parted)
	}
}

// A primary that was demoted is a follower's tree again, which no watchdog is for.
func TestATreeThatHasMovedIsNotArmed(t *testing.T) {
	p := bowl(t, time.Second, time.Hour, &mortal{})
	for _, m := range []Message{
		{Op: OpBegin, Epoch: 2}, {Op: OpExtend, Epoch: 2, Deadline: 50 * time.Hour}, {Op: OpMove, Epoch: 2, Tree: 0},
	} {
		if err := p.hear(time.Second, m); err != nil {
			t.Fatal(m.Op, err)
		}
	}
	if err := p.hear(time.Minute, Message{Op: OpUnwatch}); err != nil || len(p.parted) != 1 || !p.parted[0] {
		t.Errorf("%v: the device is left without a farewell: %v", err, p.parted)
	}
}

// P7: servers that take half a lease for each answer reset nothing.
func TestSlowAcknowledgementsResetNoMachine(t *testing.T) {
	for _, lease := range []time.Duration{3 * time.Second, 5 * time.Second, 10 * time.Second} {
		const start = time.Hour
		timeout := election.Watchdog(lease)
		p := bowl(t, timeout, start+lease, &mortal{})
		must.OK(t, p.hear(start, Message{Op: OpArm, Epoch: 1, Tree: 0, Grace: election.AfterLease(lease)}))
		fed := start
		for now := start; now < start+4*lease; now += lease / 24 {
			if all := p.run(t, now, now+lease/24); len(all) > 0 {
				fed = all[len(all)-1]
			}
			if now >= start+lease*2/3 { // until then the servers were quick, and then nothing came for as long as an answer takes
				must.OK(t, p.hear(now, Message{Op: OpExtend, Epoch: 1, Deadline: now + lease/2}))
			}
			if now-fed > timeout {
				t.Fatalf("lease %v: fed %v ago, reset after %v", lease, now-fed, timeout)
			}
		}
	}
}
