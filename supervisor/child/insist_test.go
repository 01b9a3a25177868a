package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// clearAway removes a cgroup and what is inside it.
func clearAway(path string) {
	l, err := box.OpenTreeCgroup(path, 0)
	if err != nil {
		return // it is gone
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = box.KillUntilDead(ctx, l, true)
}

const headlessWord = "child-test-headless"

// headless is a program whose main thread has ended, which is legal C: its pid is a zombie's, and its other threads run on.
func headless() {
	signal.Ignore(unix.SIGTERM)
	if depth, _ := strconv.Atoi(os.Getenv("DIG")); depth > 0 {
		dig(os.Getenv("OWN"), depth)
	}
	main := make(chan struct{})
	for range 64 {
		go func() {
			runtime.LockOSThread()
			if unix.Gettid() == unix.Getpid() {
				close(main)
				_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
			}
			select {}
		}()
	}
	if unix.Gettid() == unix.Getpid() { // those above cannot have it as long as this one has
		runtime.LockOSThread()
		go headlessAwaits()
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
	<-main
	headlessAwaits()
}

func headlessAwaits() {
	for again := time.Tick(time.Millisecond); ; <-again {
		if s, err := box.StatOf(os.Getpid()); err == nil && s.State == 'Z' {
			break
		}
	}
	fmt.Println("ready")
	select {}
}

// dig goes so deep into cgroups of its own that no path leads there.
func dig(from string, depth int) {
	err := os.Chdir(from)
	for range depth {
		err = errors.Join(err, os.Mkdir("in-the-one-above", 0o755), os.Chdir("in-the-one-above"))
	}
	if err := errors.Join(err, os.WriteFile("cgroup.procs", []byte("0"), 0)); err != nil {
		panic(err)
	}
}

// self is this binary, as what a script calls.
func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	must.OK(t, err)
	return exe
}

// P2: the kernel's order to kill a cgroup leaves out a process whose main thread has ended.
func TestProcessWithoutItsMainThreadIsKilled(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		for name, script := range map[string]string{
			"the program":    "exec " + self(t) + " " + headlessWord,
			"one of its own": self(t) + " " + headlessWord + " & sleep 1000",
		} {
			t.Run(name, func(t *testing.T) {
				tree := planted(t, guarded(t, kind))
				p, r := started(t, tree, script)
				await(t, r, "ready")
				must.OK(t, p.Kill(t.Context()))
				deadNow(t, r)
				_, r = started(t, tree, script)
				await(t, r, "ready")
				must.OK(t, tree.Kill(t.Context()))
				deadNow(t, r)
				_, r = started(t, tree, script)
				await(t, r, "ready")
				must.OK(t, tree.End(t.Context()))
				deadNow(t, r)
			})
		}
	})
}

// P3, P4: the guardians kill it too.
func TestGuardiansKillAProcessWithoutItsMainThread(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		script := self(t) + " " + headlessWord + " & sleep 1000"
		t.Run("supervisor killed", func(t *testing.T) {
			p := newPuppet(t, kind)
			p.raise(time.Minute, script)
			since := wire.Now()
			kill9(p.cmd.Process.Pid)
			p.diesAndCloses(since)
		})
		t.Run("supervisor frozen", func(t *testing.T) {
			p := newPuppet(t, kind)
			_, deadline := p.raise(3*time.Second, script)
			freeze(t, p.cmd.Process.Pid)
			if at := p.dead(); at < deadline || at > deadline+stall {
				t.Errorf("dead %v after the deadline", at-deadline)
			}
			if c := p.closing(); c.Alive || !c.AllDead {
				t.Errorf("closed too early: %+v", c)
			}
		})
	})
}

// P4: what three killed at once have left is ended before anything else is begun.
func TestProcessWithoutItsMainThreadIsSweptAway(t *testing.T) {
	need.These(t, box.KindCgroup)
	p := newPuppet(t, box.KindCgroup)
	p.raise(time.Minute, self(t)+" "+headlessWord+" & sleep 1000")
	for _, pid := range p.guardians() {
		freeze(t, pid)
	}
	guardians := p.guardians()
	kill9(p.cmd.Process.Pid)
	awaitDeath(t, p.cmd.Process.Pid)
	kill9(guardians...)
	awaitDeath(t, guardians...)
	p.lives()
	guardedAs(t, GuardConfig{Container: p.container, Name: "test"})
	p.dead()
}

// owning runs a script in a tree, with $OWN for its cgroup.
func owning(t *testing.T, tree *Tree, script string) (*Process, *os.File) {
	t.Helper()
	p, r := started(t, tree, "OWN=$(echo "+tree.cgroup.Path+"/run-"+itoa(tree.runs+1)+"); "+script)
	return p, r
}

// What a program does with the cgroups that are its own keeps nobody from ending it: some as deep as no path reaches, more than one
// turn removes, frozen ones, ones with its threads, ones that may not be looked into, and whoever is in them.
func TestWhateverAProgramMakesOfItsCgroupIsEnded(t *testing.T) {
	t.Parallel()
	need.These(t, box.KindCgroup)
	said := filepath.Join(t.TempDir(), "said")
	beside := " > " + said + " & until grep -q ready " + said + "; do sleep 0.01; done; "
	headless := self(t) + " " + headlessWord
	for name, script := range map[string]string{
		"70 deep":            `cd $OWN; for i in $(seq 70); do mkdir in; cd in; done; echo 0 > cgroup.procs`,
		"600 deep, headless": `OWN=$OWN DIG=600 ` + headless + beside,
		"400 beside":         `cd $OWN; mkdir $(seq 400); echo 0 > 333/cgroup.procs; ` + headless + beside,
		"frozen":             `mkdir $OWN/in; sleep 1000 & echo $! > $OWN/in/cgroup.procs; echo 1 > $OWN/in/cgroup.freeze`,
		"frozen, headless":   `mkdir $OWN/in; (echo 0 > $OWN/in/cgroup.procs; exec ` + headless + `)` + beside + `echo 1 > $OWN/in/cgroup.freeze`,
		"threaded":           `mkdir $OWN/in; echo threaded > $OWN/in/cgroup.type; sleep 1000 & echo $! > $OWN/in/cgroup.threads`,
		"threaded, headless": `mkdir $OWN/in; echo threaded > $OWN/in/cgroup.type; (echo 0 > $OWN/in/cgroup.threads; exec ` + headless + `)` + beside,
		"itself threaded":    `echo 0 > $OWN/../cgroup.procs; echo threaded > $OWN/cgroup.type; echo 0 > $OWN/cgroup.threads; ` + headless + beside,
	} {
		script = "exec 3>&1; rm -f " + said + "; " + script + "\necho ready; sleep 1000"
		t.Run(name, func(t *testing.T) {
			tree := planted(t, guarded(t, box.KindCgroup))
			p, r := owning(t, tree, script)
			await(t, r, "ready")
			must.OK(t, p.Kill(t.Context()))
			deadNow(t, r)
			_, r = owning(t, tree, script)
			await(t, r, "ready")
			must.OK(t, tree.Kill(t.Context()))
			deadNow(t, r)
			if left, err := filepath.Glob(filepath.Join(tree.cgroup.Path, "run-*")); err != nil || len(left) > 0 {
				t.Errorf("%v, %v", left, err)
			}
			must.OK(t, tree.End(t.Context()))
			if _, err := os.Stat(tree.cgroup.Path); !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		})
	}
}
