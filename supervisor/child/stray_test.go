package child

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/testbed/must"
)

// moved moves the one process with this argument to the cgroup $OUT, as cgrulesengd does.
func moved(t *testing.T, argument string) (pid int) {
	t.Helper()
	out := os.Getenv("OUT")
	for limit := time.Now().Add(patience); pid == 0; runtime.Gosched() { // until it is there
		all, err := box.Processes()
		if err != nil || time.Now().After(limit) {
			t.Fatal(argument, err)
		}
		for _, s := range all {
			line, _ := os.ReadFile(filepath.Join("/proc", itoa(s.Pid), "cmdline"))
			if at, _ := os.ReadFile(filepath.Join("/proc", itoa(s.Pid), "cgroup")); string(line) == "sleep\x00"+argument+"\x00" &&
				!box.InRun(string(at), []string{out}) {
				pid = s.Pid
			}
		}
	}
	must.OK(t, os.WriteFile(filepath.Join(out, "cgroup.procs"), []byte(itoa(pid)), 0))
	return pid
}

// looked is what a look finds.
func looked(t *testing.T, tree *Tree) []Stray {
	t.Helper()
	found, err := tree.Strays()
	must.OK(t, err)
	return found
}

// P2: a process that somebody else moves out of the cgroup dies with its tree.
func TestAProcessThatIsMovedOutOfTheCgroupIsKilled(t *testing.T) {
	outside(t)
	const script = "sleep 1234 & (sleep 1235; sleep 1236) & echo ready; wait"
	for name, move := range map[string]func(t *testing.T, tree *Tree, p *Process){
		"by its parent":                         func(t *testing.T, tree *Tree, _ *Process) { moved(t, "1234"); looked(t, tree) },
		"by its parent's parent":                func(t *testing.T, tree *Tree, _ *Process) { moved(t, "1235"); looked(t, tree) },
		"seen before":                           func(t *testing.T, tree *Tree, _ *Process) { looked(t, tree); moved(t, "1234") },
		"seen before, and its parent has ended": orphaned(func(t *testing.T, tree *Tree) {}),
		"seen twice, and its parent has ended":  orphaned(func(t *testing.T, tree *Tree) { looked(t, tree) }),
	} {
		for how, kill := range map[string]func(tree *Tree) error{
			"killed":    func(tree *Tree) error { return tree.Kill(t.Context()) },
			"for good":  func(tree *Tree) error { return tree.End(t.Context()) },
			"by its id": func(tree *Tree) error { looked(t, tree); return box.KillByID(t.Context(), tree.ID()) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				tree := planted(t, guarded(t, box.KindCgroup))
				p, r := started(t, tree, script)
				await(t, r, "ready")
				move(t, tree, p)
				must.OK(t, kill(tree))
				deadNow(t, r)
				if found := looked(t, tree); len(found) > 0 {
					t.Errorf("still outside: %v", found)
				}
			})
		}
	}
}

// orphaned moves a process that a look has seen, and ends its parent.
func orphaned(then func(t *testing.T, tree *Tree)) func(t *testing.T, tree *Tree, p *Process) {
	return func(t *testing.T, tree *Tree, p *Process) {
		looked(t, tree)
		moved(t, "1234")
		kill9(p.Pid())
		<-p.Done()
		then(t, tree)
	}
}

// P3, P4: the guardians hold it as well, whatever becomes of the supervisor and of the guardians that were there when it was found.
func TestGuardiansKillAProcessThatWasMovedOutOfTheCgroup(t *testing.T) {
	outside(t)
	const script = "sleep 1237 & echo ready; wait"
	raised := func(t *testing.T, lease time.Duration) (p *puppet, pid int, deadline time.Duration) {
		p = newPuppet(t, box.KindCgroup)
		_, deadline = p.raise(lease, script)
		pid = moved(t, "1237")
		p.do(command{Do: "look", Name: "a"})
		return p, pid, deadline
	}
	for name, end := range map[string]func(p *puppet){
		"all killed at once": func(p *puppet) {
			guardians := p.guardians()
			for _, pid := range guardians {
				freeze(p.t, pid)
			}
			kill9(p.cmd.Process.Pid)
			awaitDeath(p.t, p.cmd.Process.Pid)
			kill9(guardians...)
			awaitDeath(p.t, guardians...)
			guardedAs(p.t, GuardConfig{Container: p.container, Name: "test"})
		},
		"supervisor killed": func(p *puppet) { kill9(p.cmd.Process.Pid) },
		"a new guardian left": func(p *puppet) {
			kill9(p.guardians()[0])
			p.settle()
			kill9(p.guardians()[1], p.cmd.Process.Pid)
		},
		"upgraded and ended": func(p *puppet) {
			for range 2 {
				p.do(command{Do: "become"})
			}
			p.do(command{Do: "end", Name: "a"})
		},
		"upgraded, its parent gone, and ended": func(p *puppet) {
			kill9(p.do(command{Do: "pid", Name: "a"}).Pid)
			p.do(command{Do: "wait", Name: "a"})
			p.do(command{Do: "become"})
			p.do(command{Do: "end", Name: "a"})
		},
		"upgraded, and only a new guardian left": func(p *puppet) {
			p.do(command{Do: "become"})
			kill9(p.guardians()[1])
			p.settle()
			kill9(p.guardians()[0], p.cmd.Process.Pid)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, pid, _ := raised(t, time.Minute)
			end(p)
			p.dead()
			awaitDeath(t, pid)
		})
	}
	t.Run("supervisor frozen", func(t *testing.T) {
		p, _, deadline := raised(t, 3*time.Second)
		freeze(t, p.cmd.Process.Pid)
		if at := p.dead(); at < deadline || at > deadline+stall {
			t.Errorf("dead %v after the deadline", at-deadline)
		}
		if c := p.closing(); c.Alive || !c.AllDead {
			t.Errorf("closed too early: %+v", c)
		}
	})
}

// P2: as long as one of them cannot be killed, the tree is not called dead, and it is told which one that is.
func TestATreeIsNotDeadWhileAStrayLives(t *testing.T) {
	outside(t)
	tree := planted(t, guarded(t, box.KindCgroup))
	_, r := started(t, tree, "sleep 1238 & echo ready; wait")
	await(t, r, "ready")
	pid := moved(t, "1238")
	found := looked(t, tree)
	at := filepath.Base(os.Getenv("OUT"))
	if len(found) != 1 || found[0].Pid != pid || found[0].Comm != "sleep" || !strings.HasSuffix(found[0].Cgroup, at) {
		t.Fatalf("%+v", found)
	}
	stray := tree.parts[len(tree.parts)-1]
	whole := stray.box
	stray.box, stray.first = &unkillable{undying{whole}}, nil
	bounded, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := tree.End(bounded); !errors.Is(err, box.ErrUnproved) {
		t.Errorf("ended: %v", err)
	}
	held(t, r)
	stray.box = whole
	must.OK(t, tree.End(t.Context()))
	deadNow(t, r)
}

// unkillable is a box that no order reaches.
type unkillable struct{ undying }

func (*unkillable) Order() error { return nil }

// A process is held once, and not for longer than it lives.
func TestAStrayIsHeldOnceAndAsLongAsItLives(t *testing.T) {
	outside(t)
	tree := planted(t, guarded(t, box.KindCgroup))
	_, r := started(t, tree, "sleep 1239 & echo ready; wait; sleep 1000")
	await(t, r, "ready")
	parts := len(tree.parts)
	pid := moved(t, "1239")
	for range 2 { // it is held once
		looked(t, tree)
		if n := len(tree.parts); n != parts+1 {
			t.Errorf("%d parts", n)
		}
	}
	kill9(pid)
	awaitDeath(t, pid)
	if found := looked(t, tree); len(found) != 0 || len(tree.parts) != parts {
		t.Errorf("%v, %d parts", found, len(tree.parts))
	}
	if err := caughtUp(t.Context(), tree.guard); err != nil { // the guardians have nothing against it
		t.Error(err)
	}
}

// P2: what is found elsewhere once the tree's death is proved is no part of it any more, and does not stay.
func TestAStrayThatIsFoundAfterTheProofIsKilled(t *testing.T) {
	need.These(t, box.KindCgroup)
	tree := planted(t, guarded(t, box.KindCgroup))
	cmd := exec.Command("sleep", "1000")
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	s, err := box.StatOf(cmd.Process.Pid)
	must.OK(t, err)
	one, err := box.HoldFirst(s.Pid, s.Start)
	must.OK(t, err)
	must.OK(t, tree.End(t.Context()))
	if p := tree.follow(one); len(tree.parts) != 0 || !p.over {
		t.Errorf("it is one of %d parts", len(tree.parts))
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("it lives")
	}
}
