package box

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// unitOf makes the cgroup of a systemd unit, as far as it matters here.
func unitOf(t *testing.T) (dir string, in func(dir string, argv ...string) *exec.Cmd) {
	t.Helper()
	need.These(t, KindCgroup)
	base, err := CgroupBase()
	must.OK(t, err)
	if err := os.MkdirAll(base, 0o755); err != nil { // the first supervisor on a machine makes it
		t.Fatal(err)
	}
	dir, err = os.MkdirTemp(base, "unit-")
	must.OK(t, err)
	t.Cleanup(func() {
		if l, err := OpenTreeCgroup(dir, 0); err == nil {
			_ = KillUntilDead(context.Background(), l, true)
			l.Close()
		}
	})
	return dir, func(dir string, argv ...string) *exec.Cmd {
		t.Helper()
		f, err := os.Open(dir)
		must.OK(t, err)
		defer f.Close()
		cmd := &exec.Cmd{Path: "/bin/sleep", Args: argv, SysProcAttr: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}}
		must.OK(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
}

func TestUnitIsSweptOnceItsGuardiansAreGone(t *testing.T) {
	dir, in := unitOf(t)
	in(dir, "sleep", "1000")
	const busy = 300 * time.Millisecond
	began := time.Now() // before the guardian's 0.3 s begin
	in(dir, "understudy"+GuardianMark+"1/2 of node n", "0.3")
	must.OK(t, sweepUnit(context.Background(), dir, 10*time.Second))
	if took := time.Since(began); took < busy {
		t.Errorf("took %v, and the guardian %v", took, busy)
	}
	if pids, err := Members(dir); err != nil || len(pids) > 0 {
		t.Errorf("%v still live: %v", pids, err)
	}
}

func TestGuardiansThatStayAreNotWaitedForForEver(t *testing.T) {
	dir, in := unitOf(t)
	in(dir, "understudy"+GuardianMark+"1/2 of node n", "1000")
	must.OK(t, sweepUnit(context.Background(), dir, 100*time.Millisecond))
	if pids, err := Members(dir); err != nil || len(pids) > 0 {
		t.Errorf("%v still live: %v", pids, err)
	}
}

// A killed supervisor's tree is one that no process can be asked about: its name has the pid of somebody who is gone.
func TestTreeOfAKilledSupervisorIsSwept(t *testing.T) {
	dir, in := unitOf(t)
	gone := exec.Command("true")
	must.OK(t, gone.Run())
	host, err := Identity()
	must.OK(t, err)
	orphan := filepath.Join(dir, fmt.Sprintf("tree.p%d-%d-1.0123456789ab", host.PidNS, gone.Process.Pid))
	must.OK(t, os.Mkdir(orphan, 0o755))
	in(orphan, "sleep", "1000")
	mine, err := MakeTreeCgroup(dir, "mine", "")
	must.OK(t, err)
	defer mine.Close()
	must.OK(t, sweepUnit(context.Background(), dir, time.Second))
	if _, err := os.Stat(orphan); err == nil {
		t.Error("the tree is still there")
	}
	if _, err := os.Stat(mine.Path); err != nil {
		t.Errorf("the tree of a supervisor that lives is gone: %v", err)
	}
}
