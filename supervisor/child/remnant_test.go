package child

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/testbed/must"
)

// P2: what has left its cgroup, and removed that, is not found by the tree's identity any more, and it cannot be killed. Whoever wrote it
// down as a process finds it by that.
func TestWhatLeftItsCgroupAndRemovedItIsFoundAsAProcess(t *testing.T) {
	outside(t)
	g := guarded(t, box.KindCgroup)
	tree := planted(t, g)
	p, r := started(t, tree, "exec "+self(t)+" "+runawayWord)
	await(t, r, "ready")
	must.OK(t, os.Remove(p.part.path))
	_, letGo := hold(t, p.Pid())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	alive, ok := errors.AsType[*box.AliveError](tree.Unproved(tree.End(ctx)))
	if !ok || alive.Pid != p.Pid() || alive.Start == 0 {
		t.Fatalf("%+v", alive)
	}
	id := tree.ID()
	if err := id.Outlasted(alive.Pid, alive.Start); !errors.Is(err, box.ErrUnproved) {
		t.Errorf("held: %v", err)
	}
	if err := id.Outlasted(alive.Pid, 0); !errors.Is(err, box.ErrMayLive) {
		t.Errorf("held, with an unknown start: %v", err)
	}
	other := id
	other.PidNS++
	if err := other.Outlasted(alive.Pid, alive.Start); !errors.Is(err, box.ErrElsewhere) {
		t.Errorf("in another namespace: %v", err)
	}
	letGo()
	must.OK(t, tree.End(t.Context()))
	if err := id.Outlasted(alive.Pid, alive.Start); err != nil {
		t.Errorf("dead: %v", err)
	}
}

// What only waits to be reaped runs no more.
func TestAZombieIsDeadWhateverNamesIt(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	must.OK(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	s, err := box.StatOf(cmd.Process.Pid)
	must.OK(t, err)
	host, err := box.Identity()
	must.OK(t, err)
	id := box.TreeID{Kind: box.KindWalk, Boot: host.Boot, PidNS: host.PidNS}
	if err := id.Outlasted(s.Pid, s.Start); !errors.Is(err, box.ErrUnproved) {
		t.Errorf("alive: %v", err)
	}
	held, err := box.HoldProcess(s.Pid, s.Start)
	if err != nil || held == nil {
		t.Fatal(err)
	}
	defer held.Close()
	_ = cmd.Process.Kill()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(held.Fd()), Events: unix.POLLIN}}, int(patience.Milliseconds())); n != 1 {
		t.Fatal(err)
	}
	if err := id.Outlasted(s.Pid, s.Start); err != nil {
		t.Errorf("a zombie: %v", err)
	}
}
