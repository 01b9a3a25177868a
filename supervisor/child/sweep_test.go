package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/containment"
	"understudy/supervisor/testbed/must"
)

// leftBehind makes a tree's cgroup as a supervisor of that pid and start would have, with a process in it.
func leftBehind(t *testing.T, base string, pid int, start uint64, pidns uint64) string {
	t.Helper()
	return leftBehindAs(t, base, "n.s", pid, start, pidns)
}

func leftBehindAs(t *testing.T, base, name string, pid int, start uint64, pidns uint64) string {
	t.Helper()
	path := filepath.Join(base, fmt.Sprintf("%s.p%d-%d-%d.0123456789ab", name, pidns, pid, start))
	must.OK(t, os.Mkdir(path, 0o755))
	t.Cleanup(func() {
		if l, err := box.OpenTreeCgroup(path, 0); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_ = box.KillUntilDead(ctx, l, true)
			l.Close()
		}
	})
	dir, err := os.Open(path)
	must.OK(t, err)
	defer dir.Close()
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	must.OK(t, cmd.Start())
	go func() { _ = cmd.Wait() }()
	return path
}

// boxed is a place among this machine's cgroups, and what the machine is.
func boxed(t *testing.T) (box.Container, box.Host) {
	t.Helper()
	need.These(t, box.KindCgroup)
	place, err := containment.Choose(t.Context(), box.KindCgroup, nil)
	must.OK(t, err)
	// Supervisors of other tests, in other processes, start meanwhile, and sweep the machine's own.
	place.Base = ownBase(t, place.Base)
	host, err := box.Identity()
	must.OK(t, err)
	return place, host
}

func TestWhatADeadSupervisorLeftBehindIsSweptAway(t *testing.T) {
	place, host := boxed(t)
	own, err := box.StatOf(os.Getpid())
	must.OK(t, err)
	orphan := leftBehind(t, place.Base, own.Pid, own.Start-1, host.PidNS) // our pid, but of an earlier process
	living := leftBehind(t, place.Base, own.Pid, own.Start, host.PidNS)
	foreign := leftBehind(t, place.Base, own.Pid, own.Start-1, host.PidNS+1)
	if left, err := box.Sweep(t.Context(), place.Base, hclog.NewNullLogger()); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	if _, err := os.Stat(orphan); !os.IsNotExist(err) {
		t.Errorf("what a dead supervisor left is still there: %v", err)
	}
	for _, path := range []string{living, foreign} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("swept away: %v", err)
		}
	}
}

// What a breadcrumb says of a tree comes from ZooKeeper: whoever can write there must not have a supervisor, which is root as a
// rule, kill whatever cgroup a path leads to.
func TestOnlyACgroupThatItsSupervisorMadeIsKilledByAnID(t *testing.T) {
	place, host := boxed(t)
	inode, err := box.InodeOf(place.Base)
	must.OK(t, err)
	const pid, start = 1 << 30, 1
	made := leftBehind(t, place.Base, pid, start, host.PidNS)
	slice := filepath.Join(place.Base, "some.slice")
	must.OK(t, os.Mkdir(slice, 0o755))
	t.Cleanup(func() { _ = os.Remove(slice) })
	id := box.TreeID{Kind: box.KindCgroup, Boot: host.Boot, PidNS: host.PidNS, Pid: pid, StartTime: start, Inode: inode}
	other := leftBehind(t, place.Base, pid+1, start, host.PidNS)
	later := leftBehind(t, place.Base, pid, start+1, host.PidNS)
	for _, path := range []string{slice, other, later, made + "/../some.slice", made + "/", place.Base, "/"} {
		id.Path = path
		if err := box.KillByID(t.Context(), id); !errors.Is(err, box.ErrElsewhere) {
			t.Errorf("%s: kill: %v", path, err)
		}
		if dead, err := box.ProveDead(id); dead || !errors.Is(err, box.ErrElsewhere) {
			t.Errorf("%s: dead %v, %v", path, dead, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	id.Path = made
	if err := box.KillByID(t.Context(), id); err != nil {
		t.Errorf("its own: %v", err)
	}
}
