package child

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/device"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// P3: each of the two, all by itself, keeps to a deadline that was moved to sooner.
func TestAShorterDeadlineIsKeptByEachGuardian(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t, box.KindWalk)
			p.raise(time.Hour, stubborn)
			p.do(command{Do: "shorten", Epoch: 1, In: time.Second})
			freeze(t, p.cmd.Process.Pid)
			freeze(t, p.guardians()[1-i])
			p.dead()
		})
	}
}

// withWatchdog is a tree with a watchdog, which can be set to another timeout unless retime fails.
func withWatchdog(t *testing.T, timeout time.Duration, retime error) (*Guard, *Tree) {
	t.Helper()
	g := guarded(t, box.KindWalk)
	g.watchdog.open = func(path string, timeout time.Duration) (*device.Device, error) {
		file, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		return &device.Device{File: file, Timeout: timeout}, err
	}
	g.watchdog.retime = func(d *device.Device, wanted time.Duration) error {
		if retime == nil {
			d.Timeout = wanted
		}
		return retime
	}
	tree := planted(t, g)
	if err := tree.Arm(t.Context(), Watchdog{Timeout: timeout, After: time.Second}); err != nil {
		t.Fatal(err)
	}
	return g, tree
}

// questions is how many wait for an answer.
func questions(g *Guard) int {
	g.guardians.mu.Lock()
	defer g.guardians.mu.Unlock()
	return g.guardians.pair.Questions.Open()
}

// P3, P7: it is neither too slow for a shorter lease, nor unfed for what was too slow.
func TestAWatchdogIsSetToWhatAShorterLeaseNeeds(t *testing.T) {
	g, tree := withWatchdog(t, 10*time.Second, nil)
	if err := g.Shorten(t.Context(), 1, wire.Now()+30*time.Second, Watchdog{Timeout: 3 * time.Second, After: 300 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	g.guardians.mu.Lock()
	timeout := g.watchdog.device.Timeout
	_, after := tree.guarded.Armed()
	g.guardians.mu.Unlock()
	if timeout != 3*time.Second || after != 300*time.Millisecond {
		t.Errorf("timeout %v, %v after the lease", timeout, after)
	}
	if err := tree.End(t.Context()); err != nil {
		t.Error(err)
	}
}

// A machine is not reset for a lease that has become too short for its watchdog: what runs is ended before, in order.
func TestAWatchdogThatCannotBeSetEndsTheLeaseBeforeItActs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needed time.Duration
		retime error
	}{"refused": {3 * time.Second, unix.EINVAL}, "no timeout is short enough": {0, nil}} {
		t.Run(name, func(t *testing.T) {
			g, tree := withWatchdog(t, 2*time.Second, c.retime)
			if c.needed > 0 {
				g.guardians.mu.Lock()
				g.guardians.pair.State.Retime(2 * c.needed)
				g.guardians.mu.Unlock()
			}
			began := wire.Now()
			if err := g.Shorten(t.Context(), 1, began+30*time.Second, Watchdog{Timeout: c.needed, After: time.Second}); !errors.Is(err, guard.ErrMisfit) {
				t.Fatal(err)
			}
			g.guardians.mu.Lock()
			e, err := g.guardians.pair.State.Lease(1)
			if err != nil {
				t.Fatal(err)
			}
			if left := e.Deadline - began; left > max(time.Second, c.needed)+patience/4 {
				t.Errorf("the lease ends %v later", left)
			}
			g.guardians.mu.Unlock()
			select {
			case <-g.Over(1):
			case <-time.After(patience):
				t.Error("no guardian ended it")
			}
			if n := questions(g); n > 0 {
				t.Errorf("%d questions are left, which nobody asks about any more", n)
			}
			if err := tree.Arm(t.Context(), Watchdog{Timeout: c.needed, After: time.Second}); err == nil {
				t.Error("armed all the same")
			}
			if err := tree.End(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A grant that comes while the watchdog is being set to another timeout finds it as it is then: whoever reads it holds the lock.
func TestAGrantWaitsForAWatchdogThatIsBeingSet(t *testing.T) {
	g, _ := withWatchdog(t, 40*time.Second, nil)
	done, err := g.watchdog.hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shortened := make(chan error, 1)
	go func() {
		shortened <- g.Shorten(t.Context(), 1, wire.Now()+time.Hour, Watchdog{Timeout: 3 * time.Second, After: time.Second})
	}()
	for range 50 { // the other one comes to look at it meanwhile
		g.guardians.mu.Lock()
		g.guardians.pair.State.Retime(g.guardians.pair.State.Fed() - time.Millisecond)
		g.guardians.mu.Unlock()
		wire.PollOne(-1, 0, time.Millisecond) // a timer would order what is not ordered
	}
	done()
	if err := <-shortened; err != nil {
		t.Error(err)
	}
	if timeout := g.watchdog.timeout(); timeout != 3*time.Second {
		t.Errorf("it is %v", timeout)
	}
}

// Nobody asks again about what was given up.
func TestAShorterLeaseThatIsGivenUpLeavesNoQuestion(t *testing.T) {
	g, tree := withWatchdog(t, 40*time.Second, nil)
	done, err := g.watchdog.hold(t.Context()) // it is not disarmed meanwhile, and nobody gets to look at it
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if err := tree.End(t.Context()); err != nil { // the epoch is over before the watchdog is looked at
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	shortened := make(chan error, 1)
	go func() {
		shortened <- g.Shorten(ctx, 1, wire.Now()+time.Hour, Watchdog{Timeout: 3 * time.Second, After: time.Second})
	}()
	for questions(g) == 0 {
		wire.PollOne(-1, 0, time.Millisecond)
	}
	if err := g.Finish(1); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-shortened; !errors.Is(err, guard.ErrUnknownEpoch) {
		t.Error(err)
	}
	if n := questions(g); n > 0 {
		t.Errorf("%d questions are left", n)
	}
}
