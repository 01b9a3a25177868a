package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/device"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

const tracerRole = "child-test-tracer"

// tracerMain seizes the process that its argument names, and never lets it go: killed, it stops on its way out, for as long as
// this one lives.
func tracerMain() int {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() { // the kernel names a thread, and we are to name its process
		done := make(chan int)
		go func() { done <- tracerMain() }()
		return <-done
	}
	pid, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return 2
	}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, unix.PTRACE_O_TRACEEXIT, 0, 0)
	if errno != 0 {
		fmt.Println(errno)
		return 1
	}
	fmt.Println("seized")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is told to go, or its test is gone
	return 0
}

// hold has a process held by a tracer, which no signal ends then, until it is let go.
func hold(t *testing.T, pid int) (tracer int, letGo func()) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{tracerRole, strconv.Itoa(pid)}
	in, err := cmd.StdinPipe()
	must.OK(t, err)
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	letGo = func() { _ = in.Close(); _ = cmd.Wait() }
	t.Cleanup(letGo)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "seized\n" {
		t.Fatalf("not seized: %q, %v", line, err)
	}
	return cmd.Process.Pid, letGo
}

// onlyPid is the one process of a cgroup.
func onlyPid(t *testing.T, path string) int {
	t.Helper()
	pids, err := box.Members(path)
	if err != nil || len(pids) != 1 {
		t.Fatalf("%v, %v", pids, err)
	}
	return pids[0]
}

func soonLeft(t *testing.T, g *Guard, service string, id box.TreeID) *box.Leftover {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	return g.Leftover(ctx, service, id)
}

// It concerns the service that it is of, under the same root, and says what there is to be seen; and it is ended once that is
// possible.
func TestALeftoverConcernsItsServiceAlone(t *testing.T) {
	place, host := boxed(t)
	db := leftBehindAs(t, place.Base, "n.db.s"+box.TagOf("/a", "db"), 1<<30, 1, host.PidNS)
	pid := onlyPid(t, db)
	tracer, letGo := hold(t, pid)
	for _, c := range []struct {
		root, service string
		concerned     bool
	}{
		{"/a", "db", true}, {"/b", "db", false}, {"/a", "d", false}, {"/a", "cache", false},
	} {
		g := newGuard(GuardConfig{Container: place, Root: c.root})
		if l := soonLeft(t, g, c.service, box.TreeID{}); (l != nil) != c.concerned {
			t.Errorf("%s under %s: %v", c.service, c.root, l)
		}
	}
	g := newGuard(GuardConfig{Container: place, Root: "/a"})
	l := soonLeft(t, g, "db", box.TreeID{})
	if l.Pid != pid || l.Tracer != tracer || l.Program != "sleep" || !strings.HasPrefix(l.State, "t") {
		t.Errorf("%+v, but it is pid %d, traced by %d", *l, pid, tracer)
	}
	letGo()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, service := range []string{"db"} {
		if l := g.Leftover(ctx, service, box.TreeID{}); l != nil {
			t.Errorf("let go, and still there: %v", l)
		}
	}
	for _, path := range []string{db} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
}

// The tree that a breadcrumb names is ended if its supervisor is no more, and only then: else another node's may run in it.
func TestTheTreeThatABreadcrumbNamesIsEndedOnlyAfterItsSupervisor(t *testing.T) {
	place, host := boxed(t)
	own, err := box.StatOf(os.Getpid())
	must.OK(t, err)
	inode, err := box.InodeOf(place.Base)
	must.OK(t, err)
	id := box.TreeID{Kind: box.KindCgroup, Boot: host.Boot, PidNS: host.PidNS, Pid: own.Pid, StartTime: own.Start, Inode: inode}
	id.Path = leftBehind(t, place.Base, own.Pid, own.Start, host.PidNS)
	pid := onlyPid(t, id.Path)
	g := newGuard(GuardConfig{Container: place, Root: "/a"})
	if l := soonLeft(t, g, "s", id); l != nil {
		t.Errorf("its supervisor lives, and it is a leftover: %v", l)
	}
	if s, err := box.StatOf(pid); err != nil || !s.Alive() {
		t.Errorf("its supervisor lives, and it is killed: %v, %v", s, err)
	}
	id.Pid, id.StartTime = 1<<30, 1
	id.Path = leftBehind(t, place.Base, id.Pid, id.StartTime, host.PidNS)
	_, letGo := hold(t, onlyPid(t, id.Path))
	if l := soonLeft(t, g, "another", id); l == nil || !l.Named || l.Tracer == 0 {
		t.Errorf("its supervisor is no more, and it is held: %v", l)
	}
	letGo()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if l := g.Leftover(ctx, "another", id); l != nil {
		t.Errorf("let go, and still there: %v", l)
	}
}

// While something is left of whatever service, the watchdog is not touched: to open it and close it would call off a reset.
func TestTheWatchdogIsNotOpenedBesideALeftover(t *testing.T) {
	t.Parallel()
	place, host := boxed(t)
	_, letGo := hold(t, onlyPid(t, leftBehind(t, place.Base, 1<<30, 1, host.PidNS)))
	g := guardedAs(t, GuardConfig{Container: place, Name: "other", Root: "/b"})
	var opened atomic.Bool
	errOpened := errors.New("opened")
	g.watchdog.open = func(string, time.Duration) (*device.Device, error) { opened.Store(true); return nil, errOpened }
	if err := g.CheckWatchdog(t.Context(), Watchdog{}); !errors.Is(err, box.ErrLeftover) || opened.Load() {
		t.Errorf("opened: %v, %v", opened.Load(), err)
	}
	must.OK(t, g.Begin(1, nil))
	must.OK(t, g.Extend(1, wire.Now()+time.Hour))
	tree, err := g.NewTree(t.Context(), 1, "svc", nil)
	must.OK(t, err)
	if err := tree.Arm(t.Context(), Watchdog{}); !errors.Is(err, box.ErrLeftover) || opened.Load() {
		t.Errorf("opened: %v, %v", opened.Load(), err)
	}
	letGo()
	for limit := time.Now().Add(patience); ; runtime.Gosched() {
		err := g.CheckWatchdog(t.Context(), Watchdog{})
		if errors.Is(err, errOpened) {
			return
		}
		if !errors.Is(err, box.ErrLeftover) || time.Now().After(limit) {
			t.Fatalf("let go: %v", err)
		}
	}
}

// What cannot be killed keeps no supervisor from starting, and is tried again until it can be, by whoever runs here.
func TestALeftoverIsEndedAsSoonAsThatCanBe(t *testing.T) {
	place, host := boxed(t)
	path := leftBehind(t, place.Base, 1<<30, 1, host.PidNS)
	_, letGo := hold(t, onlyPid(t, path))
	guardedAs(t, GuardConfig{Container: place, Name: "other"})
	letGo()
	for limit := time.Now().Add(patience); ; runtime.Gosched() {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return
		}
		if time.Now().After(limit) {
			t.Fatal("it is still there")
		}
	}
}

// A tree that a breadcrumb names is found under each kind of containment; and then no watchdog is opened either.
func TestWhatIsLeftOfANamedTreeIsSeen(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		p := newPuppet(t, kind)
		p.do(command{Do: "begin", Epoch: 1})
		p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
		id := p.do(command{Do: "tree", Epoch: 1, Name: "a"}).ID
		pid := p.do(command{Do: "start", Name: "a", Script: "echo ready; exec sleep 1000"}).Pid
		p.ready()
		tracer, letGo := hold(t, pid)
		all := append(p.guardians(), p.cmd.Process.Pid)
		for _, one := range all {
			freeze(t, one)
		}
		kill9(all...)
		_ = p.cmd.Wait()
		g := newGuard(GuardConfig{Container: p.container, Root: "/a"})
		opened := errors.New("opened")
		g.watchdog.open = func(string, time.Duration) (*device.Device, error) { return nil, opened }
		l := soonLeft(t, g, "another", id)
		if l == nil || !l.Named || l.Pid != pid || l.Tracer != tracer {
			t.Fatalf("%+v, but it is pid %d, traced by %d", l, pid, tracer)
		}
		if _, err := g.watchdog.openDevice(t.Context(), Watchdog{}); !errors.Is(err, box.ErrLeftover) {
			t.Errorf("the watchdog: %v", err)
		}
		letGo()
		limit := time.Now().Add(patience)
		for err := error(nil); !errors.Is(err, opened); wire.PollOne(-1, 0, 10*time.Millisecond) { // though nobody asks for that tree by its name
			if err = g.CheckWatchdog(t.Context(), Watchdog{}); time.Now().After(limit) {
				t.Fatalf("it is dead: %v", err)
			}
		}
		if l := g.Leftover(t.Context(), "another", id); l != nil {
			t.Errorf("let go, and still there: %v", l)
		}
	})
}

// A program that has left its cgroup and cannot be killed is named as any other, with what keeps it.
func TestAProgramThatHasLeftAndCannotBeKilledIsNamed(t *testing.T) {
	outside(t)
	for name, gone := range map[string]bool{"its cgroup stays": false, "its cgroup is removed": true} {
		t.Run(name, func(t *testing.T) {
			tree := planted(t, guarded(t, box.KindCgroup))
			p, r := started(t, tree, "exec "+self(t)+" "+runawayWord)
			await(t, r, "ready")
			if gone {
				must.OK(t, unix.Rmdir(tree.parts[0].path))
			}
			tracer, letGo := hold(t, p.Pid())
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err := tree.Unproved(tree.End(ctx))
			alive, _ := errors.AsType[*box.AliveError](err)
			if alive == nil || alive.Pid != p.Pid() || alive.Tracer != tracer || !strings.HasPrefix(alive.State, "t") {
				t.Errorf("%v, but it is pid %d, traced by %d", err, p.Pid(), tracer)
			}
			l := (box.Orphan{Path: tree.cgroup.Path}).Leftover() // as a later supervisor finds it
			if !gone && (l.Pid != p.Pid() || l.Tracer != tracer) {
				t.Errorf("%v, but it is pid %d, traced by %d", l, p.Pid(), tracer)
			}
			letGo()
		})
	}
}
