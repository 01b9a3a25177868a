package child

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/device"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/testbed/must"
)

// P4: guardians of a guard that has stopped are not killed: they end what it could not prove dead, and close its sessions.
func TestGuardiansOfAStoppedGuardGoOn(t *testing.T) {
	g, stop := running(t, GuardConfig{Container: probed(t, box.KindWalk), Name: "test"})
	planted(t, g)
	var pids []int
	g.guardians.mu.Lock()
	for _, s := range g.guardians.at {
		pids = append(pids, s.pid)
	}
	g.guardians.mu.Unlock()
	for _, pid := range pids {
		defer kill9(pid)
		freeze(t, pid)
	}
	must.Report(t, stop())
	for _, pid := range pids {
		if s, err := box.StatOf(pid); err != nil || !s.Alive() {
			t.Errorf("guardian %d is killed (%v)", pid, err)
		}
	}
}

// P4: a log that nobody reads holds up no replacement, and no answer.
func TestALogThatIsFullHoldsNoGuardianUp(t *testing.T) {
	unread, log := io.Pipe()
	g := guardedAs(t, GuardConfig{Container: probed(t, box.KindWalk), Name: "test", Logger: hclog.New(&hclog.LoggerOptions{Output: log})})
	t.Cleanup(func() { _ = unread.Close() }) // before the guard ends
	tree := planted(t, g)
	for i := range 4 {
		g.guardians.mu.Lock()
		s := g.guardians.at[i%2]
		g.guardians.mu.Unlock()
		if s == nil {
			t.Fatalf("guardian %d is not replaced", i%2+1)
		}
		kill9(s.pid)
		bounded, cancel := context.WithTimeout(t.Context(), patience)
		err := bothServe(bounded, g, 1)
		cancel()
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	must.Report(t, tree.End(t.Context()))
}

// watchedBody notes whether the guardian lives when its death is ordered.
type watchedBody struct {
	box.Box
	by      *guardianProcess
	unseen  bool
	ordered bool
}

func (b *watchedBody) Order() error {
	box.Sleep(int(b.by.pidfd.Fd()), unix.POLLIN, 100*time.Millisecond) // a kill is not seen at once
	b.ordered, b.unseen = true, b.by.gone()
	return nil
}

// P4: what the last guardian watched over is struck before that is killed.
func TestTreesAreStruckBeforeTheirGuardian(t *testing.T) {
	sleeper := exec.Command("sleep", "1000")
	must.OK(t, sleeper.Start())
	defer func() { _ = sleeper.Wait() }()
	defer func() { _ = sleeper.Process.Kill() }()
	stat, err := box.StatOf(sleeper.Process.Pid)
	must.OK(t, err)
	held, err := box.HoldProcess(stat.Pid, stat.Start)
	must.OK(t, err)
	defer held.Close()
	g := newGuard(GuardConfig{})
	tree, s := &Tree{guard: g}, &guardianProcess{pid: stat.Pid, pidfd: held}
	b := &watchedBody{by: s}
	tree.parts = []*part{newPart(tree, b, nil)}
	g.guardians.mu.Lock()
	g.guardians.at[0] = s
	err = g.guardians.pair.State.Begin(1, nil)
	_, _, planted := g.guardians.pair.State.AddTree(wire.Now(), 1, guard.TreeSpec{Of: tree})
	guardianHands{g.guardians}.KillNow()
	guardianHands{g.guardians}.Kill(0, errors.New("it is not needed"))
	g.guardians.unlock()
	must.OK(t, errors.Join(err, planted))
	if !b.ordered || b.unseen {
		t.Errorf("ordered %v, and nobody watched over it: %v", b.ordered, b.unseen)
	}
	if box.Sleep(int(held.Fd()), unix.POLLIN, patience); !s.gone() {
		t.Error("the guardian lives")
	}
}

// A guardian that sleeps while its supervisor stops does not keep the watchdog, which would reset the machine.
func TestAWatchdogIsDisarmedThoughAGuardianSleeps(t *testing.T) {
	t.Parallel()
	said, log := io.Pipe()
	g, stop := running(t, GuardConfig{
		Container: probed(t, box.KindWalk), Name: "test", Logger: hclog.New(&hclog.LoggerOptions{Output: log}),
	})
	g.watchdog.open = func(path string, timeout time.Duration) (*device.Device, error) {
		file, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		return &device.Device{File: file, Timeout: timeout}, err
	}
	lines := make(chan string, 64)
	go func() {
		for all := bufio.NewScanner(said); all.Scan(); {
			lines <- all.Text()
		}
		close(lines)
	}()
	tree := planted(t, g)
	must.OK(t, tree.Arm(t.Context(), Watchdog{Timeout: time.Minute, After: time.Second}))
	g.guardians.mu.Lock()
	pid := g.guardians.at[1].pid
	g.guardians.mu.Unlock()
	freeze(t, pid)
	must.Report(t, stop())
	for limit := time.After(patience); ; {
		select {
		case line := <-lines:
			if strings.Contains(line, "watchdog may not be disarmed") {
				t.Fatal(line)
			} else if strings.Contains(line, "watchdog disarmed") {
				_ = log.Close()
				return
			}
		case <-limit:
			t.Fatal("nothing is said of it")
		}
	}
}
