package child

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/testbed/must"
)

func tasks(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	must.OK(t, err)
	return len(entries)
}

func TestThreadsThatAreReservedStay(t *testing.T) {
	n := tasks(t, os.Getpid()) + 10
	box.ReserveThreads(n)
	if got := tasks(t, os.Getpid()); got < n {
		t.Errorf("%d threads, %d were reserved", got, n)
	}
}

// At a limit of tasks a guardian does not get the first thread that it needs later on.
func TestGuardiansHaveTheirThreadsBeforeTheyNeedThem(t *testing.T) {
	guarded(t, box.KindCgroup)
	for _, pid := range guardiansOf(os.Getpid()) {
		if got := tasks(t, pid); got < 6 {
			t.Errorf("guardian %d has %d threads", pid, got)
		}
	}
}

// Each has its own answer, also those that have ended before anybody waits.
func TestManyProcessesAreWaitedForWithoutThreads(t *testing.T) {
	const n = 100
	box.ReserveThreads(8)
	before := tasks(t, os.Getpid())
	var all []*exec.Cmd
	var in []*os.File
	for i := range n {
		r, w, err := os.Pipe()
		must.OK(t, err)
		cmd := exec.Command("sh", "-c", fmt.Sprintf("read x; exit %d", i))
		cmd.Stdin = r
		must.OK(t, cmd.Start())
		_ = r.Close()
		in, all = append(in, w), append(all, cmd)
	}
	var over [2]sync.WaitGroup
	for i, cmd := range all {
		if i%2 == 0 {
			_ = in[i].Close()
		}
		over[i%2].Go(func() {
			if state, err := box.WaitFor(cmd.Process); err != nil || state.ExitCode() != i {
				t.Errorf("process %d ended with %v, %v", i, state, err)
			}
		})
	}
	over[0].Wait() // by then all the others wait, too
	if got := tasks(t, os.Getpid()); got > before+n/4 {
		t.Errorf("%d threads wait, %d were there before", got, before)
	}
	for i, w := range in {
		if i%2 != 0 {
			_ = w.Close()
		}
	}
	over[1].Wait()
}

func TestRestEndsWithTheEventOrWithItsTime(t *testing.T) {
	r, w, err := os.Pipe()
	must.OK(t, err)
	defer r.Close()
	began := time.Now()
	box.Sleep(int(r.Fd()), 1, time.Millisecond)
	if took := time.Since(began); took < time.Millisecond {
		t.Errorf("without an event it ended after %v", took)
	}
	_ = w.Close()
	box.Sleep(int(r.Fd()), 1, time.Hour)
	box.Sleep(int(r.Fd()), 1, time.Hour) // again: nothing of the first is left
}
