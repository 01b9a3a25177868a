package child

import (
	"errors"
	"os"
	"testing"
	"time"

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

// questions is how many wait for an answer.
func questions(g *Guard) int {
	g.guardians.mu.Lock()
	defer g.guardians.mu.Unlock()
	return g.guardians.pair.Questions.Open()
}

// A machine is not reset for a lease that has become too short for its watchdog: what runs is ended before, in order.
func TestAWatchdogThatIsTooSlowForAShorterLeaseEndsIt(t *testing.T) {
	t.Parallel()
	g := guarded(t, box.KindWalk)
	const timeout = 2 * time.Second
	g.watchdog.open = func(string, time.Duration) (*device.Device, error) {
		file, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		return &device.Device{File: file, Timeout: timeout}, err
	}
	tree := planted(t, g)
	if err := tree.Arm(t.Context(), Watchdog{Timeout: timeout, After: time.Second}); err != nil {
		t.Fatal(err)
	}
	began := wire.Now()
	shorter := Watchdog{Timeout: timeout / 2, After: time.Second}
	if err := g.Shorten(t.Context(), 1, began+30*time.Second, shorter); !errors.Is(err, guard.ErrMisfit) {
		t.Fatal(err)
	}
	g.guardians.mu.Lock()
	e, err := g.guardians.pair.State.Lease(1)
	if err != nil {
		t.Fatal(err)
	}
	if left := e.Deadline - began; left > timeout/2+patience/4 {
		t.Errorf("the lease ends %v later", left)
	}
	g.guardians.mu.Unlock()
	if err := tree.Arm(t.Context(), shorter); err == nil {
		t.Error("armed all the same")
	}
	select {
	case <-g.Over(1):
	case <-time.After(patience):
		t.Error("no guardian ended it")
	}
	if n := questions(g); n > 0 {
		t.Errorf("%d questions are left, which nobody asks about any more", n)
	}
	if err := tree.End(t.Context()); err != nil {
		t.Error(err)
	}
}
