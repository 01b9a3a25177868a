package child

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/testbed/must"
)

// P4: until the death of every tree is ordered, a guardian that still watches lives, also if new ones fail to start meanwhile.
func TestTheLastGuardianIsKilledAfterEveryStrike(t *testing.T) {
	g := newGuardians(GuardConfig{Logger: hclog.NewNullLogger()})
	g.start.exe = "/nonexistent"
	var theirs [2]*os.File
	for i := range g.at {
		pidfd := -1
		process, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{PidFD: &pidfd}})
		must.OK(t, err)
		t.Cleanup(func() { _ = process.Kill() })
		ours, other, err := wire.SocketPair()
		must.OK(t, err)
		theirs[i] = other
		g.at[i] = &guardianProcess{pid: process.Pid, process: process, pidfd: os.NewFile(uintptr(pidfd), "guardian"), link: wire.Link{File: ours}}
	}
	t.Cleanup(func() { _ = theirs[1].Close() })
	slow := &Tree{alive: alive{closed: true}}
	g.mu.Lock()
	for i, number := range g.pair.Present(wire.Now(), [2]uint64{}) {
		g.at[i].number = number
	}
	must.OK(t, g.pair.State.Begin(1, nil))
	if _, _, err := g.pair.State.AddTree(wire.Now(), 1, guard.TreeSpec{Of: slow}); err != nil {
		t.Fatal(err)
	}
	g.unlock()
	last := g.at[1]
	slow.mu.Lock() // an order may wait for the kernel
	g.attend(0, g.at[0])
	g.attend(1, last)
	_ = theirs[0].Close() // one is gone, and none can be started
	until(t, "the next kills are decided", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.later) > 0 || last.gone()
	})
	if last.gone() {
		t.Error("the last guardian was killed before the strike")
	}
	slow.mu.Unlock()
	until(t, "the last guardian is killed", last.gone)
}

// until waits for a fact.
func until(t *testing.T, what string, fact func() bool) {
	t.Helper()
	for again, late := time.Tick(time.Millisecond), time.After(patience); !fact(); {
		select {
		case <-again:
		case <-late:
			t.Fatal("never: ", what)
		}
	}
}
