package unit

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/packaging/need"
	"understudy/supervisor/child"
	"understudy/supervisor/host"
	"understudy/supervisor/testbed/must"
)

// shell is a guard whose trees run each command by a function, which returns its exit code.
type shell struct {
	host.Guard
	run func(ctx context.Context, argv []string) (code int)
}

func (shell) Begin(uint64, []byte) error         { return nil }
func (shell) Extend(uint64, time.Duration) error { return nil }
func (shell) Finish(uint64) error                { return nil }

func (g shell) NewTree(context.Context, uint64, string, []byte) (host.Tree, error) {
	return shellTree{run: g.run}, nil
}

type shellTree struct {
	host.Tree
	run func(context.Context, []string) int
}

func (t shellTree) Start(ctx context.Context, spec child.Spec) (host.Process, error) {
	return endedProcess{child.ExitStatus{Code: t.run(ctx, spec.Argv)}}, nil
}

func (shellTree) End(context.Context) error { return nil }

func debtor(t *testing.T, node, name string, run func(context.Context, []string) int) *Unit {
	t.Helper()
	u := New(Config{
		Service: name, Node: node, Cluster: t.Name(), Logger: hclog.NewNullLogger(),
		Commands: NewCommands(func() host.Guard { return shell{run: run} }, func() time.Duration { return time.Hour }),
	})
	t.Cleanup(func() { _ = os.Remove(u.undos.store.Path()) })
	return u
}

var vip = PendingUndo{Name: "vip", Command: []string{"del"}, Timeout: time.Second}

// P2: an effect that stays would be on two hosts. What fails is tried again, ever more rarely, and what came before it waits.
func TestAnUndoThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		u := debtor(t, "a", "db", func(_ context.Context, argv []string) int {
			if ran = append(ran, argv[0]); argv[0] == "umount" && len(ran) <= 8 {
				return 32
			}
			return 0
		})
		u.Restore([]PendingUndo{vip, {Name: "fs", Command: []string{"umount"}, Timeout: time.Second}}, 0)
		began, said := time.Now(), []string{}
		if !u.UndoAll(t.Context(), Leaving{}, func() { said = append(said, u.NotUndone()) }) || u.HasPendingEffects() || u.NotUndone() != "" {
			t.Errorf("still owed: %v, %s", u.PendingUndos(), u.NotUndone())
		}
		if len(ran) != 10 || ran[8] != "umount" || ran[9] != "del" {
			t.Errorf("ran %q", ran)
		}
		if took, want := time.Since(began), (1+2+4+8+16+30+30+30)*time.Second; took != want {
			t.Errorf("took %v, want %v", took, want)
		}
		if len(said) != 8 || said[2] != "not undone: fs: exit code 32, next try in 4s" || said[7] != "not undone: fs: exit code 32, next try in 30s" {
			t.Errorf("said %q", said)
		}
	})
}

// One that hangs is killed when its time is over.
func TestAnUndoThatHangsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		u := debtor(t, "a", "db", func(ctx context.Context, _ []string) int {
			if tries++; tries == 1 {
				<-ctx.Done()
				return 137
			}
			return 0
		})
		u.Restore([]PendingUndo{vip}, 0)
		began := time.Now()
		if err := u.Undo(t.Context()); err == nil || !u.HasPendingEffects() || time.Since(began) != vip.Timeout {
			t.Errorf("after %v: %v, owes %v", time.Since(began), err, u.HasPendingEffects())
		}
		if err := u.Undo(t.Context()); err != nil || u.HasPendingEffects() {
			t.Errorf("%v, owes %v", err, u.HasPendingEffects())
		}
	})
}

// undyingTree is one whose end is not proved.
type undyingTree struct {
	shellTree
	ended *error
}

func (t undyingTree) End(context.Context) error { return *t.ended }

type undyingGuard struct {
	shell
	ended *error
}

func (g undyingGuard) NewTree(context.Context, uint64, string, []byte) (host.Tree, error) {
	return undyingTree{shellTree{run: g.run}, g.ended}, nil
}

// P2: an unmount that hangs goes on, though the next one finds nothing mounted.
func TestNothingIsUndoneBesideAnUndoThatHangs(t *testing.T) {
	tries, ended := 0, errors.New("a process hangs")
	u := debtor(t, "a", "db", nil)
	u.cfg.Commands = NewCommands(func() host.Guard {
		return undyingGuard{shell{run: func(context.Context, []string) int {
			tries++
			return 0
		}}, &ended}
	}, func() time.Duration { return time.Hour })
	u.Restore([]PendingUndo{vip}, 0)
	for _, want := range []string{"not undone: vip: a process hangs", "not undone: vip: an earlier attempt has not ended: a process hangs"} {
		if err := u.Undo(t.Context()); err == nil || !u.HasPendingEffects() || u.NotUndone() != want || tries != 1 {
			t.Errorf("%v, owes %v, %q, tried %d times", err, u.HasPendingEffects(), u.NotUndone(), tries)
		}
	}
	ended = nil
	if err := u.Undo(t.Context()); err != nil || u.HasPendingEffects() || tries != 2 {
		t.Errorf("%v, owes %v, tried %d times", err, u.HasPendingEffects(), tries)
	}
}

// A command that tells may settle what an undo cannot: it is asked after an undo that failed, also by the next supervisor. P2: not before.
func TestWhoTellsThatNothingIsLeftIsBelieved(t *testing.T) {
	need.These(t, "root") // who may write the note
	var ran []string
	there := true
	u := debtor(t, "a", "db", func(_ context.Context, argv []string) int {
		ran = append(ran, argv[0])
		if argv[0] == "del" || there {
			return 1
		}
		return 0
	})
	told := vip
	told.Undone = []string{"none"}
	must.OK(t, u.undos.add(told))
	if err := u.Undo(t.Context()); err == nil || !u.HasPendingEffects() || u.NotUndone() != "not undone: vip: exit code 1 (undone says no)" {
		t.Errorf("%v, owes %v, %s", err, u.HasPendingEffects(), u.NotUndone())
	}
	there = false
	next := New(u.cfg)
	next.LoadUndos()
	if err := next.Undo(t.Context()); err != nil || next.HasPendingEffects() {
		t.Errorf("%v, owes %v", err, next.HasPendingEffects())
	}
	if want := []string{"del", "none", "del", "none"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
}

// realTree runs real commands, and kills none of their children.
type realTree struct{ shellTree }

func (realTree) Start(ctx context.Context, spec child.Spec) (host.Process, error) {
	cmd := exec.CommandContext(ctx, spec.Argv[0], spec.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = spec.Stdout, spec.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return nil, err
	}
	status := child.ExitStatus{Code: cmd.ProcessState.ExitCode()}
	if how := cmd.ProcessState.Sys().(syscall.WaitStatus); how.Signaled() {
		status = child.ExitStatus{Code: 128 + int(how.Signal()), Signal: how.Signal()}
	}
	return endedProcess{status}, nil
}

type realGuard struct{ shell }

func (realGuard) NewTree(context.Context, uint64, string, []byte) (host.Tree, error) {
	return realTree{}, nil
}

// P2: mountpoint says "not mounted" with the same exit code as "I cannot look". Only a plain yes counts, and only once the undo has ended by
// itself: of one that was killed, or did not begin, nobody knows what it still sets going.
func TestOnlyAPlainYesAfterTheUndoIsBelieved(t *testing.T) {
	for _, one := range []struct{ undo, undone, says string }{
		{"exit 32", "exit 0", ""},
		{"exit 32", "echo gone", ""},
		{"echo busy >&2; exit 32", "exit 1", "exit code 32: busy (undone says no)"},
		{"exit 32", "echo cannot look >&2", "exit code 32 (undone: exit code 0, with a complaint: cannot look)"},
		{"exit 32", "echo cannot look >&2; exit 1", "exit code 32 (undone: exit code 1: cannot look)"},
		{"exit 32", "exit 127", "exit code 32 (undone: exit code 127)"},
		{"exit 32", "kill -9 $$", "exit code 32 (undone: killed by SIGKILL)"},
		{"kill -9 $$", "exit 0", "killed by SIGKILL"},
		{"exec sleep 100", "exit 0", "killed by SIGKILL"},
	} {
		u := New(Config{
			Service: "db", Node: "a", Cluster: t.Name(), Logger: hclog.NewNullLogger(),
			Commands: NewCommands(func() host.Guard { return realGuard{} }, func() time.Duration { return time.Hour }),
		})
		u.Restore([]PendingUndo{{Name: "fs", Command: []string{"sh", "-c", one.undo}, Undone: []string{"sh", "-c", one.undone}, Timeout: 300 * time.Millisecond}}, 0)
		err := u.Undo(t.Context())
		if got := u.NotUndone(); u.HasPendingEffects() != (one.says != "") || one.says != "" && got != "not undone: fs: "+one.says {
			t.Errorf("%s, %s: owes %v: %v, %s", one.undo, one.undone, u.HasPendingEffects(), err, got)
		}
	}
	u := New(Config{
		Service: "db", Node: "a", Cluster: t.Name(), Logger: hclog.NewNullLogger(),
		Commands: NewCommands(func() host.Guard { return realGuard{} }, func() time.Duration { return time.Hour }),
	})
	u.Restore([]PendingUndo{{Name: "fs", Command: []string{"/none"}, Undone: []string{"true"}, Timeout: time.Second}}, 0)
	if err := u.Undo(t.Context()); err == nil || !u.HasPendingEffects() {
		t.Errorf("the undo did not begin: %v, owes %v", err, u.HasPendingEffects())
	}
}

// A term that lost its lease undoes in the background. That has to be over before a term can do something that must not be undone.
func TestTheBackgroundUndoesNothingOfTheNextTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works, runs := false, 0
		u := debtor(t, "a", "db", func(context.Context, []string) int {
			if runs++; works {
				return 0
			}
			return 1
		})
		u.Restore([]PendingUndo{vip}, 0)
		u.StartUndo(t.Context())
		time.Sleep(3500 * time.Millisecond)
		u.StopUndo()
		if works = true; runs != 3 || u.Undo(t.Context()) != nil {
			t.Errorf("%d attempts, still owed: %v", runs, u.PendingEffects())
		}
		u.Restore([]PendingUndo{vip}, 0)
		time.Sleep(time.Hour)
		if runs != 4 || !u.HasPendingEffects() {
			t.Errorf("%d attempts: what a later term did is undone", runs)
		}
	})
}

// Two supervisors of one machine must not undo what the other's program needs: the names of nodes and services have dots.
func TestNodesOfOneMachineOweInFilesOfTheirOwn(t *testing.T) {
	need.These(t, "root") // who may write the notes
	one, other := debtor(t, "a.b", "c", nil), debtor(t, "a", "b.c", nil)
	if one.undos.store.Path() == other.undos.store.Path() {
		t.Errorf("both have %s", one.undos.store.Path())
	}
	must.OK(t, one.undos.add(vip))
	if owed := owedOf("", "a.b", "c"); len(owed) != 1 || len(owedOf("", "a", "b.c")) > 0 {
		t.Errorf("owed: %q", owed)
	}
	again := debtor(t, "a.b", "c", nil) // which vouches for nothing before that is undone
	if again.LoadUndos(); len(again.PendingUndos()) != 0 && !again.HasPendingEffects() {
		t.Errorf("%d debts, and it says that nothing is owed", len(again.PendingUndos()))
	}
	must.OK(t, os.Rename(one.undos.store.Path(), other.undos.store.Path()))
	if other.LoadUndos(); len(other.PendingUndos()) > 0 {
		t.Error("what another node owes is taken over")
	}
	if _, err := os.Stat(other.undos.store.Path()); err != nil {
		t.Error("what another node owes is forgotten")
	}
}
