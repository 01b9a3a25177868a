package child

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// ticks is the processor time that a process has used, in hundredths of a second.
func ticks(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	must.OK(t, err)
	fields := strings.Fields(string(raw)[strings.LastIndexByte(string(raw), ')')+1:])
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}

// A process that cannot be killed costs its own service, not the processors: what is dead of its tree is no news any more.
func TestGuardiansDoNotSpinBesideWhatCannotBeKilled(t *testing.T) {
	g := guarded(t, box.KindCgroup)
	tree := planted(t, g)
	p, r := started(t, tree, "sleep 1000 & echo ready; wait")
	await(t, r, "ready")
	pids, err := box.Members(tree.parts[0].path)
	must.OK(t, err)
	for _, pid := range pids {
		if pid != p.Pid() {
			hold(t, pid)
		}
	}
	ends(t, g, tree)
	<-g.Over(2)
	<-p.Done()
	guardians := guardiansOf(os.Getpid())
	var before []int
	for _, pid := range guardians {
		before = append(before, ticks(t, pid))
	}
	wire.PollOne(-1, 0, 600*time.Millisecond)
	for i, pid := range guardians {
		if used := ticks(t, pid) - before[i]; used > 30 {
			t.Errorf("guardian %d used %d of 60 hundredths of a second", i+1, used)
		}
	}
}

// P2: a cgroup that cannot be opened, for want of descriptors say, is not taken for one that is gone.
func TestATreeCgroupThatCannotBeLookedAtIsLeft(t *testing.T) {
	place, host := boxed(t)
	path := leftBehindAs(t, place.Base, "n.db.s"+box.TagOf("/a", "db"), 1<<30, 1, host.PidNS)
	if pid := onlyPid(t, path); pid == 0 {
		t.Fatal("nothing runs in it")
	}
	g := newGuard(GuardConfig{Container: place, Root: "/a"})
	var was unix.Rlimit
	must.OK(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	none := was
	none.Cur = 3
	must.OK(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &none, nil))
	left := box.EndAll(t.Context(), []box.Orphan{{Path: path}}, g.cfg.Logger)
	l := g.Leftover(t.Context(), "db", box.TreeID{})
	must.OK(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &was, nil))
	if len(left) != 1 || l == nil {
		t.Errorf("left: %v, %v", left, l)
	}
}

// P2: while the process that was started lives, the tree is not proved dead by its id, though it has left its cgroup and removed it.
func TestATreeWhoseProgramHasLeftIsNotProvedDeadByItsID(t *testing.T) {
	outside(t)
	g := guarded(t, box.KindCgroup)
	tree := planted(t, g)
	p, r := started(t, tree, "exec "+self(t)+" "+runawayWord)
	await(t, r, "ready")
	if err := unix.Rmdir(tree.parts[0].path); err != nil { // as the program can, which has left it
		t.Fatal(err)
	}
	hold(t, p.Pid())
	ends(t, g, tree)
	<-g.Over(2)
	wire.PollOne(-1, 0, 200*time.Millisecond)
	if _, err := os.Stat(tree.cgroup.Path); errors.Is(err, os.ErrNotExist) {
		t.Error("its cgroup is removed, so that anybody takes it for dead")
	}
}

// ends has a tree live under a lease that is soon over.
func ends(t *testing.T, g *Guard, tree *Tree) {
	t.Helper()
	err := errors.Join(g.Begin(2, nil), g.Extend(2, wire.Now()+300*time.Millisecond), tree.Move(t.Context(), 2, nil))
	must.OK(t, err)
}
