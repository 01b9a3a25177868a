package child

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// mortal is a body that dies when it is told that it may.
type mortal struct {
	dies    bool
	struck  int
	removed bool
}

func (m *mortal) order() error        { return m.strike() }
func (m *mortal) strike() error       { m.struck++; return nil }
func (m *mortal) insist() error       { return nil }
func (m *mortal) seal()               {}
func (m *mortal) dead() (bool, error) { return m.dies && m.struck > 0, nil }
func (m *mortal) remove() error       { m.removed = true; return nil }
func (m *mortal) wake() (int, int16, time.Duration) {
	return -1, 0, time.Millisecond
}
func (m *mortal) close() {}

// watched is a watch of bodies, and what its session closer was told.
func watched(t *testing.T, index int, answer func(order) error, bodies ...*mortal) (*watch, *closing, chan order) {
	t.Helper()
	told := make(chan order, 16)
	c, err := newClosing(func(_ context.Context, ticket []byte, releases [][]byte, allDead bool) error {
		o := order{ticket: ticket, releases: releases, allDead: allDead}
		told <- o
		return answer(o)
	}, index)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(c.bell) })
	w := &watch{epoch: 1, ticket: []byte("t"), deadline: time.Second, trees: map[uint64]*quarry{}}
	for i, b := range bodies {
		w.trees[uint64(i)] = &quarry{release: []byte{byte('a' + i)}, bodies: []prey{{body: b}}}
	}
	return w, c, told
}

func fine(order) error { return nil }

// P2: what is not proved dead is not released, and the session is not closed for it.
func TestReleaseOfAnUnprovedTreeIsWithheld(t *testing.T) {
	good, bad := &mortal{dies: true}, &mortal{}
	w, c, told := watched(t, 0, fine, good, bad)
	now := 10 * time.Second
	w.end(now, 0, false)
	w.kill(now)
	if at := w.close(now, c); at != now+closeAnyway || len(told) > 0 {
		t.Fatalf("closed with a tree alive, again at %v", at)
	}
	now += closeAnyway
	w.kill(now)
	w.close(now, c)
	if o := <-told; o.allDead || len(o.releases) != 1 || string(o.releases[0]) != "a" {
		t.Fatalf("%+v", o)
	}
	settle(w, c)
	now += time.Minute
	w.kill(now)
	w.close(now, c)
	if len(told) > 0 || w.settled() {
		t.Fatal("given up, or told again what was told")
	}
	bad.dies = true
	w.kill(now)
	w.close(now, c)
	if o := <-told; !o.allDead || len(o.releases) != 2 {
		t.Fatalf("%+v", o)
	}
	settle(w, c)
	if !w.settled() || !good.removed || !bad.removed {
		t.Fatal("not settled")
	}
}

// settle waits for the closer that is under way.
func settle(w *watch, c *closing) {
	pollOne(c.bell, unix.POLLIN, patience)
	c.hear(map[uint64]*watch{w.epoch: w}, func(*message) {})
}

func TestClosingIsTriedAgain(t *testing.T) {
	fails := 2
	w, c, told := watched(t, 0, func(order) error {
		if fails--; fails >= 0 {
			return errors.New("no network")
		}
		return nil
	}, &mortal{dies: true})
	w.end(0, 0, false)
	w.kill(0)
	w.close(0, c)
	settle(w, c)
	if len(told) != 3 || !w.settled() {
		t.Fatalf("told %d times", len(told))
	}
}

func TestSecondGuardianLeavesTheClosingToTheFirst(t *testing.T) {
	w, c, told := watched(t, 1, fine, &mortal{dies: true})
	now := 10 * time.Second
	w.end(now, 1, false)
	w.kill(now)
	if at := w.close(now, c); at != now+closeHeadStart || w.busy {
		t.Fatalf("it closes at once, or at %v", at)
	}
	c.first() // the other one is gone
	w.close(now, c)
	<-told
	settle(w, c)
}

// P3: no message, however it got delayed, brings a lease back.
func TestEndedLeaseIsNeverRevived(t *testing.T) {
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	b := &mortal{}
	w, c, _ := watched(t, 0, fine, b)
	g := &guardian{sock: int(theirs.Fd()), watches: map[uint64]*watch{1: w}, closing: c, grace: time.Second}
	w.deadline = Now() - 1
	for _, m := range []message{
		{Op: opTree, Epoch: 1, Tree: 9}, // though no timer has been handled
		{Op: opExtend, Epoch: 1, Deadline: Now() + time.Hour},
		{Op: opStub, Epoch: 1, Tree: 0},
	} {
		if err := g.obey(&m); !errors.Is(err, ErrLeaseEnded) {
			t.Errorf("%s after the deadline: %v", m.Op, err)
		}
	}
	if !w.ended || b.struck == 0 {
		t.Error("the lease was not ended")
	}
	if err := g.obey(&message{Op: opBegin, Epoch: 1}); err == nil {
		t.Error("an epoch began twice")
	}
	fresh := &watch{epoch: 2, trees: map[uint64]*quarry{1: {}}}
	g.watches[2] = fresh
	if err := g.obey(&message{Op: opStub, Epoch: 2, Tree: 1}); !errors.Is(err, ErrNoLease) {
		t.Errorf("a stub before a lease: %v", err)
	}
}

// P2: a supervisor that finishes an epoch with trees in it has forgotten something.
func TestFinishWithTreesLeftKillsThem(t *testing.T) {
	b := &mortal{}
	w, c, _ := watched(t, 0, fine, b)
	w.deadline = Now() + time.Hour
	g := &guardian{sock: -1, watches: map[uint64]*watch{1: w}, closing: c}
	if err := g.obey(&message{Op: opFinish, Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	if !w.ended || b.struck == 0 || g.watches[1] == nil {
		t.Error("forgotten alive")
	}
}

func TestOwnCgroupIsFound(t *testing.T) {
	const v2 = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	const hybrid = "29 24 0:25 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n42 24 0:39 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	for _, c := range []struct{ own, mounts, want string }{
		{"0::/system.slice/understudy.service\n", v2, "/sys/fs/cgroup/system.slice/understudy.service"},
		{"4:pids:/x\n0::/\n", hybrid, "/sys/fs/cgroup/unified/understudy"},
		{"0::/a/b\n", "1 2 0:1 /a /mnt/my\\040cgroup rw shared:1 - cgroup2 none rw\n", "/mnt/my cgroup/b"},
		{"0::/ab\n", "1 2 0:1 /a /mnt rw - cgroup2 none rw\n", ""},
		{"0::/../x\n", v2, ""},
		{"4:pids:/x\n", hybrid, ""},
		{"0::/\n", "", ""},
	} {
		got, err := baseFrom(c.own, c.mounts)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: %q, %v", c.own, got, err)
		}
	}
}

func FuzzStatLine(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(own))
	f.Add("1 (a) b) (c) Z 0 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 5 0")
	f.Fuzz(func(t *testing.T, line string) {
		s, err := parseStat(line)
		if err == nil && s.state == 0 {
			t.Errorf("%q: %+v", line, s)
		}
	})
}

func TestDescendantsAreFoundAtAnyDepth(t *testing.T) {
	all := []stat{{pid: 1, ppid: 0}, {pid: 5, ppid: 4}, {pid: 4, ppid: 3}, {pid: 3, ppid: 2}, {pid: 2, ppid: 1}, {pid: 9, ppid: 1}}
	var got []int
	for _, s := range descendants(all, 2) {
		got = append(got, s.pid)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]int{3, 4, 5}, got); diff != "" {
		t.Error(diff)
	}
}

func TestProbeRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := Probe(t.Context(), "nonsense", "", nil); !errors.Is(err, ErrNoContainer) {
		t.Error(err)
	}
	if _, err := Probe(t.Context(), "cgroup", "/nonexistent", nil); !errors.Is(err, ErrNoContainer) {
		t.Error(err)
	}
}

// An init in a container reaps what is orphaned, and passes on signals and the supervisor's code.
func TestPID1ReapsAndPassesTheCodeOn(t *testing.T) {
	need(t, KindPidNS)
	cmd := exec.Command("/proc/self/exe")
	cmd.Args[0] = pid1Role
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	if n, err := out.Read(buf); err != nil || string(buf[:n]) != "ready\n" {
		t.Fatalf("%q %v", buf[:n], err)
	}
	// Orphans have gone through it by then; none is left as a zombie.
	deadline := time.Now().Add(patience)
	for zombies := 1; zombies > 0; {
		all, err := processes()
		if err != nil {
			t.Fatal(err)
		}
		zombies = 0
		for _, s := range descendants(all, cmd.Process.Pid) {
			if s.state == 'Z' {
				zombies++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d zombies", zombies)
		}
		pollOne(-1, 0, time.Millisecond)
	}
	if err := cmd.Process.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	err = cmd.Wait()
	if took := time.Since(asked); took > patience {
		t.Errorf("it has ended after %v: a daemon is nobody to wait for", took)
	}
	_ = in.Close()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%v", err)
	}
}
