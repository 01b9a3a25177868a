package kit

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// wrapper starts a stand-in for a supervisor: util-linux' flock around a shell that counts tokens.
func wrapper(t *testing.T, a *Accounts, node string, flags ...string) *exec.Cmd {
	t.Helper()
	const count = `n=$(($(cat "$0" 2>/dev/null) + 1)); echo $n > "$0"; UNDERSTUDY_TOKEN=$n exec "$@"`
	args := slices.Concat(flags, []string{a.File("lock"), "sh", "-c", count, a.File("token")}, a.Child("term=exit"))
	cmd := exec.Command("flock", args...)
	cmd.Env = append(os.Environ(), "UNDERSTUDY_NODE="+node)
	must.OK(t, start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		Signal(syscall.SIGKILL, a.Processes()...)
	})
	return cmd
}

// kill9 ends a wrapper the way nobody can prepare for.
func kill9(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	must.OK(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
}

// flock keeps the lock in its child too: a right wrapper, as far as overlaps go.
func TestCheckerFindsNothingInARightWrapper(t *testing.T) {
	a := NewAccounts(t, nil)
	first := wrapper(t, a, "a")
	previous := a.On(t, Soon, "a", 0)
	wrapper(t, a, "b")
	kill9(t, first)
	Throughout(t, 300*time.Millisecond, "a's child holds the lock", func() bool { return len(a.Runs()) == 1 })
	Signal(syscall.SIGTERM, previous.Pid)
	latter := a.On(t, Soon, "b", previous.First)
	runs := a.Runs()
	if found := Overlaps(runs); len(found) != 0 {
		t.Errorf("overlaps: %v", found)
	}
	if faults := TokenFaults(runs); len(faults) != 0 {
		t.Errorf("token faults: %v", faults)
	}
	if gap := Gap(runs[0], latter); gap <= 0 || gap > Stall {
		t.Errorf("gap %v", gap)
	}
}

// flock -o gives the lock back when it dies, and its child lives on: what every naive wrapper does.
func TestCheckerCatchesAWrapperThatLetsTwoRun(t *testing.T) {
	a := NewAccounts(t, nil)
	first := wrapper(t, a, "a", "-o")
	a.On(t, Soon, "a", 0)
	wrapper(t, a, "b", "-o")
	kill9(t, first)
	previous, latter := a.Runs()[0], a.On(t, Soon, "b", 0)
	Until(t, Soon, "the overlap lasts", func() bool {
		found := Overlaps(a.Runs())
		return len(found) == 1 && found[0].Length > 50*time.Millisecond
	})
	if previous.Node != "a" || latter.Node != "b" {
		t.Errorf("runs on %s and %s", previous.Node, latter.Node)
	}
}

// A daemon that nobody reaped is a child like any other.
func TestCheckerCatchesADaemonLeftBehind(t *testing.T) {
	a := NewAccounts(t, nil)
	start := func(node string) *exec.Cmd {
		args := a.Child("daemons=1", "children=1")
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "UNDERSTUDY_NODE="+node, "UNDERSTUDY_TOKEN=1")
		must.OK(t, start(cmd))
		t.Cleanup(func() { Signal(syscall.SIGKILL, a.Processes()...) })
		return cmd
	}
	first := start("a")
	a.WaitRun(t, Soon, "a whole family runs", func(r Run) bool {
		return r.Procs["main"] == 1 && r.Procs["child"] == 1 && r.Procs["grandchild"] == 1 && r.Procs["daemon"] == 1
	})
	Until(t, Soon, "4 processes are found", func() bool { return len(a.Processes()) == 4 }) // who forked the daemon exits by and by
	kill9(t, first)
	start("b")
	Until(t, Soon, "the overlap is found", func() bool { return len(Overlaps(a.Runs())) == 1 })
	if len(TokenFaults(a.Runs())) == 0 {
		t.Error("the same token on two nodes went unnoticed")
	}
}

func TestOverlapsAreFoundBetweenRunsThatAreNotNeighbours(t *testing.T) {
	runs := []Run{
		{Node: "a", Token: 1, ID: "1", First: 0, Last: 100},
		{Node: "b", Token: 2, ID: "2", First: 10, Last: 20},
		{Node: "c", Token: 3, ID: "3", First: 90, Last: 200},
		{Node: "a", Token: 4, ID: "4", First: 201, Last: 300},
	}
	found := Overlaps(runs)
	if len(found) != 2 || found[0].Length != 10 || found[1].Length != 10 || found[1].Later.ID != "3" {
		t.Errorf("found %v", found)
	}
}

func TestTokensMustGrow(t *testing.T) {
	for name, runs := range map[string][]Run{
		"none":            {{Node: "a"}},
		"smaller":         {{Node: "a", Token: 2}, {Node: "b", Token: 1}},
		"the same abroad": {{Node: "a", Token: 2}, {Node: "b", Token: 2}},
	} {
		if len(TokenFaults(runs)) == 0 {
			t.Errorf("%s: went unnoticed", name)
		}
	}
	if f := TokenFaults([]Run{{Node: "a", Token: 2}, {Node: "a", Token: 2}, {Node: "b", Token: 3}}); len(f) != 0 {
		t.Errorf("restart in place: %v", f)
	}
}
