package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/wait"
)

// held checks that somebody has the pipe, without waiting for anything to happen to it.
func held(t *testing.T, r *os.File) {
	t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := r.Read(make([]byte, 4096)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it was to be left alone: %v", err)
	}
}

// P2: nil from a process's Kill is proof for what that start spawned, and the others of the tree do not notice.
func TestStartsOfOneTreeAreKilledOneByOne(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		t.Setenv("DIR", t.TempDir())
		tree := planted(t, guarded(t, kind))
		scripts := []string{stubborn, stubborn, stubborn, storm}
		var ps []*Process
		var rs []*os.File
		for _, script := range scripts {
			p, r := started(t, tree, script)
			await(t, r, "ready")
			ps, rs = append(ps, p), append(rs, r)
		}
		for n, i := range []int{3, 0, 1} {
			p := ps[i]
			must.OK(t, p.Kill(t.Context()))
			deadNow(t, rs[i])
			if status, err := p.Wait(t.Context()); err != nil || status.Signal != unix.SIGKILL {
				t.Errorf("%+v %v", status, err)
			}
			if err := p.Kill(t.Context()); err != nil {
				t.Errorf("the second time: %v", err)
			}
			for _, others := range [][]int{{0, 1, 2}, {1, 2}, {2}}[n] {
				held(t, rs[others])
			}
		}
		must.OK(t, tree.Kill(t.Context()))
		deadNow(t, rs[2])
		if err := ps[2].Kill(t.Context()); err != nil {
			t.Errorf("after its tree: %v", err)
		}
	})
}

// What one start leaves behind when it ends by itself is still that start's.
func TestForksThatOutliveTheirProgramAreKilledWithIt(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		p, r := started(t, tree, `for i in 1 2 3; do (setsid sleep 1000 &); done; exit 3`)
		if status, err := p.Wait(t.Context()); err != nil || status.Code != 3 {
			t.Fatalf("%+v %v", status, err)
		}
		must.OK(t, p.Kill(t.Context()))
		deadNow(t, r)
	})
}

// lasting is a box that dies when it is told to.
type lasting struct {
	gone, closed atomic.Bool
}

func (l *lasting) Order() error      { return nil }
func (l *lasting) KillNow() error    { return nil }
func (l *lasting) KillHarder() error { return nil }
func (l *lasting) Seal()             {}
func (l *lasting) Remove() error     { return nil }
func (l *lasting) Wake() (int, int16, time.Duration) {
	return -1, 0, time.Millisecond
}
func (l *lasting) Dead() (bool, error) { return l.gone.Load(), nil }
func (l *lasting) Close()              { l.closed.Store(true) }

// P2: what one Kill still looks at, no other one closes: its number may come to mean another process.
func TestBodyIsKeptAsLongAsSomebodyLooksAtIt(t *testing.T) {
	tree := planted(t, guarded(t, box.KindWalk))
	b := new(lasting)
	p := newPart(tree, b, nil)
	bounded, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := p.kill(bounded); !errors.Is(err, box.ErrUnproved) {
		t.Errorf("killed: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- p.kill(t.Context()) }()
	for looking := false; !looking; {
		tree.mu.Lock()
		looking = p.users > 0
		tree.mu.Unlock()
		wire.PollOne(-1, 0, time.Millisecond)
		select {
		case err := <-done:
			t.Fatalf("it ended: %v", err)
		default:
		}
		if t.Context().Err() != nil {
			t.Fatal("nobody is known to look")
		}
	}
	tree.guard.guardians.mu.Lock()
	tree.mu.Lock()
	p.shed() // as the tree's own Kill does
	tree.mu.Unlock()
	tree.guard.guardians.mu.Unlock()
	if b.closed.Load() {
		t.Error("closed under the eyes of another")
	}
	b.gone.Store(true)
	if err := <-done; err != nil || !b.closed.Load() {
		t.Errorf("%v, closed %v", err, b.closed.Load())
	}
}

func TestManyStartsAndKillsAtOnce(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		g := guarded(t, kind)
		tree := planted(t, g)
		stays, stay := started(t, tree, "echo ready; exec sleep 1000")
		await(t, stay, "ready")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 4 {
					p, err := tree.Start(t.Context(), Spec{Argv: []string{"sh", "-c", "(setsid sleep 1000 &); sleep 1000"}})
					if err != nil {
						t.Error(err)
						return
					}
					var killers sync.WaitGroup
					for range 3 {
						killers.Go(func() {
							must.Report(t, p.Kill(t.Context()))
						})
					}
					killers.Wait()
				}
			})
		}
		all.Wait()
		held(t, stay)
		select {
		case <-stays.Done():
			t.Error("it was to be left alone")
		default:
		}
		tree.mu.Lock()
		left := len(tree.parts)
		tree.mu.Unlock()
		if left != 1 {
			t.Errorf("%d parts are left", left)
		}
	})
}

// P2: only a start's own proof counts as proof.
func TestKillOfAStartWithoutItsStubIsUnproved(t *testing.T) {
	tree := planted(t, guarded(t, box.KindWalk))
	p, r := started(t, tree, "echo ready; exec sleep 1000")
	await(t, r, "ready")
	stub := tree.parts[0].stub.Pid
	kill9(stub)
	awaitDeath(t, stub)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Kill(ctx); !errors.Is(err, box.ErrUnproved) {
		t.Errorf("killed: %v", err)
	}
	if s, err := box.StatOf(p.Pid()); err == nil && s.Alive() {
		kill9(p.Pid())
	}
	tree.mu.Lock()
	tree.parts = nil // or the guard would not stop
	tree.mu.Unlock()
}

// P4: the guardians end all starts of a tree, also those that a replaced one was told of anew, and none that was killed before
// stands in their way.
func TestAllStartsAreTheGuardiansToEnd(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		for alone, name := range []string{"the new guardian", "the old guardian"} {
			t.Run(name, func(t *testing.T) {
				p := newPuppet(t, kind)
				p.raise(time.Minute, stubborn)
				p.do(command{Do: "start", Name: "a", Script: "exec sleep 1000"})
				p.do(command{Do: "kill last", Name: "a"})
				p.do(command{Do: "start", Name: "a", Script: stubborn})
				p.ready()
				p.do(command{Do: "start", Name: "a", Script: stubborn, Settings: inside.Settings{Umask: new(uint32)}})
				p.ready()
				kill9(p.guardians()[0])
				p.do(command{Do: "tree", Epoch: 1, Name: "b"}) // needs both
				p.do(command{Do: "end", Name: "b"})
				guardians := p.guardians()
				if alone == 0 {
					since := wire.Now()
					kill9(p.cmd.Process.Pid, guardians[1])
					p.diesAndCloses(since)
					return
				}
				// Frozen, so that no death of the supervisor ends anything: the one guardian left has to.
				freeze(t, p.cmd.Process.Pid)
				kill9(guardians[0])
				p.dead()
				if c := p.closing(); c.Alive || !c.AllDead {
					t.Errorf("closed too early: %+v", c)
				}
			})
		}
	})
}

func TestTreeKnowsItsOwn(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		p, r := started(t, tree, "(setsid sh -c 'echo ready; sleep 1000; :' &); sleep 1000; :")
		await(t, r, "ready")
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for owned := 0; owned < 4; <-tick.C { // two shells, and their two sleeps as soon as they are there
			all, err := box.Processes()
			if err != nil || t.Context().Err() != nil {
				t.Fatal(err)
			}
			owned = 0
			for _, s := range all {
				if tree.Owns(s.Pid) {
					owned++
				}
			}
		}
		if !tree.Owns(p.Pid()) {
			t.Error("the first one is not the tree's")
		}
		for _, pid := range []int{os.Getpid(), os.Getppid(), 1, 0, -1, 1 << 30} {
			if tree.Owns(pid) {
				t.Errorf("%d is not of the tree", pid)
			}
		}
		must.OK(t, p.Kill(t.Context()))
		if tree.Owns(p.Pid()) {
			t.Error("a dead one is of nobody")
		}
	})
}

func TestStartsLeakNothing(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		g := guarded(t, kind)
		tree := planted(t, g)
		umask := uint32(0o22)
		one := func() {
			for _, spec := range []Spec{
				{Argv: []string{"true"}},
				{Argv: []string{"true"}, Settings: inside.Settings{Umask: &umask}},
				{Argv: []string{"/etc/passwd/x"}, Settings: inside.Settings{Umask: &umask}},
				{Argv: []string{"true"}, Settings: inside.Settings{Limits: []inside.Limit{limitOf("nofile", 1<<40, 1<<40)}}},
			} {
				if p, err := tree.Start(t.Context(), spec); err == nil {
					must.OK(t, p.Kill(t.Context()))
				}
			}
			must.OK(t, caughtUp(t.Context(), g))
		}
		one()
		fds, guardianFDs, _, goroutines := footprint(t, g)
		for range 8 { // 32 starts: a leak of one a start is ten times what a footprint may differ by
			one()
		}
		fds2, guardianFDs2, _, goroutines2 := footprint(t, g)
		for end := time.Now().Add(patience); time.Now().Before(end) && (fds2 > fds+3 || goroutines2 > goroutines+3); wire.PollOne(-1, 0, time.Millisecond) {
			fds2, guardianFDs2, _, goroutines2 = footprint(t, g) // who reaped the last ones is just about to go
		}
		if fds2 > fds+3 || guardianFDs2 > guardianFDs+2 || goroutines2 > goroutines+3 || len(tree.parts) > 0 {
			t.Errorf("descriptors %d -> %d, of the guardians %d -> %d, goroutines %d -> %d, parts %d",
				fds, fds2, guardianFDs, guardianFDs2, goroutines, goroutines2, len(tree.parts))
		}
		if tree.cgroup != nil {
			runs, err := filepath.Glob(filepath.Join(tree.cgroup.Path, "run-*"))
			if err != nil || len(runs) > 0 {
				t.Errorf("cgroups are left: %v %v", runs, err)
			}
		}
	})
}

func TestOutputOfACommandAndNothingLeftOfIt(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		var started atomic.Int32
		start := func(ctx context.Context, spec Spec) (*Process, error) {
			defer started.Add(1)
			return tree.Start(ctx, spec)
		}
		run := func(ctx context.Context, script string) (Result, error) {
			return Output(ctx, new(wait.Reach), start, Spec{Argv: []string{"sh", "-c", script}, Env: os.Environ()})
		}
		got, err := run(t.Context(), "echo out; echo err >&2; exit 4")
		if err != nil || got.Status.Code != 4 || string(got.Output) != "out\nerr\n" {
			t.Errorf("%+v %q %v", got.Status, got.Output, err)
		}
		got, err = run(t.Context(), `(trap "" TERM; setsid sleep 1000 &); echo forked`)
		if err != nil || got.Status.Code != 0 || string(got.Output) != "forked\n" {
			t.Errorf("%+v %q %v", got.Status, got.Output, err)
		}
		hangs := filepath.Join(t.TempDir(), "hangs")
		t.Setenv("HANGS", hangs)
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		go func() { // ends with the test
			for ctx.Err() == nil {
				if _, err := os.Stat(hangs); err == nil && started.Load() == 3 {
					cancel(enough)
				}
				wire.PollOne(-1, 0, time.Millisecond)
			}
		}()
		got, err = run(ctx, `trap "" TERM; echo hangs; : > $HANGS; while :; do sleep 1000; done`)
		if !errors.Is(err, enough) || got.Status.Signal != unix.SIGKILL || string(got.Output) != "hangs\n" {
			t.Errorf("%+v %q %v", got.Status, got.Output, err)
		}
		got, err = run(t.Context(), "yes x | head -c 3000000; echo last")
		if err != nil || len(got.Output) > outputKept || !strings.HasSuffix(string(got.Output), "x\nlast\n") {
			t.Errorf("%+v, %d bytes, %v", got.Status, len(got.Output), err)
		}
		if _, err := run(ctx, "true"); err == nil {
			t.Error("it was started although its time is over")
		}
		if len(tree.parts) > 0 {
			t.Error("something is left")
		}
	})
}

// A start that its caller has no more time for leaves nothing, not even in the tree.
func TestAStartGivenUpLeavesNothing(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		g := guarded(t, kind)
		tree := planted(t, g)
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		g.beforeSpawn = func() { cancel(enough) }
		p, err := tree.Start(ctx, Spec{Argv: []string{"sleep", "1000"}})
		switch {
		case err == nil: // it ran before anybody looked at ctx
			must.Report(t, p.Kill(t.Context()))
		case !errors.Is(err, enough):
			t.Errorf("%+v, %v", p, err)
		}
		if len(tree.parts) > 0 {
			t.Error("something is left")
		}
	})
}

// P2: a kill that has no time to prove a death has ordered it, also while another one is at it.
func TestAKillWithoutTimeOrdersTheDeath(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		p, r := started(t, tree, "echo ready; exec sleep 1000")
		await(t, r, "ready")
		p.part.killing <- struct{}{}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := p.Kill(ended); !errors.Is(err, box.ErrUnproved) {
			t.Errorf("killed: %v", err)
		}
		select {
		case <-p.Done():
		case <-time.After(patience):
			t.Error("it lives")
		}
		<-p.part.killing
		must.OK(t, p.Kill(t.Context()))
	})
}
