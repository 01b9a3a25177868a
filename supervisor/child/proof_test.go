package child

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/testbed/must"
)

// P2: a fork that is under way when everything seen is dead may still come.
func TestStartThatIsUnderWayPreventsProof(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		g := guarded(t, kind)
		tree := planted(t, g)
		reached, release := make(chan struct{}), make(chan struct{})
		g.beforeSpawn = func() { close(reached); <-release }
		done := make(chan error, 1)
		go func() {
			_, err := tree.Start(t.Context(), Spec{Argv: []string{"sleep", "1000"}})
			done <- err
		}()
		<-reached
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := tree.Kill(ctx); !errors.Is(err, box.ErrUnproved) {
			t.Errorf("called dead with a fork under way: %v", err)
		}
		if err := tree.End(ctx); !errors.Is(err, box.ErrUnproved) {
			t.Errorf("called ended with a fork under way: %v", err)
		}
		close(release)
		<-done
		must.Report(t, tree.End(t.Context()))
	})
}

// P2: a walked tree without its stub cannot be found any more, so it is not called dead.
func TestStubThatIsKilledProvesNothing(t *testing.T) {
	g, end := running(t, GuardConfig{Container: probed(t, box.KindWalk), Name: "test"})
	tree := planted(t, g)
	_, r := started(t, tree, "(setsid sleep 1000 &); echo ready; exec sleep 1000")
	await(t, r, "ready")
	all, err := box.Processes()
	must.OK(t, err)
	stub := tree.parts[0].stub.Pid
	orphans := box.Descendants(all, stub)
	kill9(stub)
	awaitDeath(t, stub)
	bounded, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	if err := tree.Kill(bounded); !errors.Is(err, box.ErrUnproved) {
		t.Errorf("killed: %v", err)
	}
	id := tree.ID()
	if dead, err := box.ProveDead(id); dead || !errors.Is(err, box.ErrUnproved) {
		t.Errorf("by its id: dead %v, %v", dead, err)
	}
	for _, s := range orphans {
		kill9(s.Pid)
	}
	guardians := guardiansOf(os.Getpid())
	tree.mu.Lock()
	tree.parts = nil // or the guard would not stop either
	tree.mu.Unlock()
	if err := end(); err != nil && !errors.Is(err, box.ErrUnproved) {
		t.Error(err)
	}
	kill9(guardians...)
}

// P3: the gate stays shut until both guardians can kill it.
func TestGateStaysShutUntilBothGuardiansKnow(t *testing.T) {
	for _, kind := range []string{box.KindCgroup, box.KindPidNS, box.KindWalk} {
		t.Run(kind, func(t *testing.T) {
			needKind(t, kind)
			g := guarded(t, kind)
			tree := planted(t, g)
			g.guardians.mu.Lock()
			stopped := g.guardians.at[1].pid
			g.guardians.mu.Unlock()
			freeze(t, stopped)
			defer func() { _ = unix.Kill(stopped, unix.SIGCONT) }()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			ran := filepath.Join(t.TempDir(), "ran")
			if p, err := tree.Start(ctx, Spec{Argv: []string{"touch", ran}}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("started: %+v, %v", p, err)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("it ran")
			}
		})
	}
}

// P3: what the kernel holds keeps a cgroup from being removed; what is forked into it late is frozen before its first
// instruction, and killed.
func TestWhatIsForkedLateIntoWhatIsEndedNeverRuns(t *testing.T) {
	need.These(t, box.KindCgroup)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would wait for the fork, and everything here for it
	g := guarded(t, box.KindCgroup)
	tree := planted(t, g)
	if dead, err := guard.KillOnce(&clinging{tree.cgroup}, true); dead || err != nil {
		t.Fatalf("%v, %v", dead, err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	started := make(chan error, 1)
	go func() {
		_, err := tree.Start(t.Context(), Spec{Argv: []string{"touch", ran}})
		started <- err
	}()
	frozen := func() bool {
		text, err := os.ReadFile(filepath.Join(tree.cgroup.Path, "cgroup.events"))
		must.OK(t, err)
		return strings.Contains(string(text), "populated 1") && strings.Contains(string(text), "frozen 1")
	}
	for until := time.Now().Add(patience); !frozen(); wire.PollOne(-1, 0, time.Millisecond) {
		if len(started) > 0 || time.Now().After(until) {
			t.Fatal("it is not frozen")
		}
	}
	must.Report(t, tree.End(t.Context()))
	<-started // killed before it was the program, which its end tells, or the start
	if _, err := os.Stat(ran); err == nil {
		t.Error("it ran")
	}
}

// clinging is a box in which the kernel holds something.
type clinging struct{ box.Box }

func (*clinging) Dead() (bool, error) { return false, nil }

// P5: a later supervisor on the same machine can see and kill what an earlier one left, and never takes for dead what it
// cannot see.
func TestTreeOfAnotherSupervisorIsKilledByItsID(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		p := newPuppet(t, kind)
		p.do(command{Do: "begin", Epoch: 1})
		p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
		raw, err := json.Marshal(p.do(command{Do: "tree", Epoch: 1, Name: "a"}).ID)
		must.OK(t, err)
		var id box.TreeID
		must.OK(t, json.Unmarshal(raw, &id))
		if dead, _ := box.ProveDead(id); dead {
			t.Error("an empty tree is called dead while its supervisor lives")
		}
		p.do(command{Do: "start", Name: "a", Script: stubborn})
		p.ready()
		if dead, err := box.ProveDead(id); dead || err != nil {
			t.Fatalf("dead: %v, %v", dead, err)
		}
		for name, change := range map[string]func(*box.TreeID){
			"boot":          func(id *box.TreeID) { id.Boot = "another" },
			"pid namespace": func(id *box.TreeID) { id.PidNS++ },
			"no namespace":  func(id *box.TreeID) { id.PidNS = 0 },
			"parent":        func(id *box.TreeID) { id.Inode++; id.Mark = "" },
			"path":          func(id *box.TreeID) { id.Path = "/nonexistent/x"; id.Mark = "" },
			"kind":          func(id *box.TreeID) { id.Kind = "" },
		} {
			other := id
			change(&other)
			if dead, err := box.ProveDead(other); dead || !errors.Is(err, box.ErrElsewhere) {
				t.Errorf("another %s: dead %v, %v", name, dead, err)
			}
			if err := box.KillByID(t.Context(), other); !errors.Is(err, box.ErrElsewhere) {
				t.Errorf("another %s: kill: %v", name, err)
			}
		}
		// The guardians are stopped: nobody else does it.
		for _, pid := range p.guardians() {
			freeze(t, pid)
		}
		freeze(t, p.cmd.Process.Pid)
		guardians := p.guardians()
		stubs, _ := id.Stubs() // none in a cgroup
		err = box.KillByID(t.Context(), id)
		if kind == box.KindCgroup && err != nil || kind != box.KindCgroup && !errors.Is(err, box.ErrUnproved) {
			t.Errorf("kill while its supervisor is frozen: %v", err)
		}
		p.dead()
		kill9(guardians...)
		kill9(p.cmd.Process.Pid)
		awaitDeath(t, guardians...)
		awaitDeath(t, p.cmd.Process.Pid)
		for _, s := range stubs {
			awaitDeath(t, s.Pid)
		}
		dead, err := box.ProveDead(id)
		if kind == box.KindWalk {
			if dead || !errors.Is(err, box.ErrUnproved) {
				t.Errorf("a walked tree without its stub: dead %v, %v", dead, err)
			}
		} else if !dead || err != nil {
			t.Errorf("dead %v, %v", dead, err)
		}
	})
}
