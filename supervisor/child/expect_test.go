package child

import (
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/testbed/must"
)

// expects waits for the process that is prepared in a tree.
func expects(t *testing.T, tree *Tree) (pid int) {
	t.Helper()
	tree.Expect(t.Context())
	tree.expected.making.Lock()
	defer tree.expected.making.Unlock()
	if tree.expected.next == nil {
		t.Fatal("nothing is prepared")
	}
	return tree.expected.next.p.pid
}

// gone demands that a process is dead, reaped, and that the tree has no part left.
func gone(t *testing.T, tree *Tree, pid int) {
	t.Helper()
	until(t, "it is gone", func() bool { return unix.Kill(pid, 0) == unix.ESRCH })
	tree.mu.Lock()
	defer tree.mu.Unlock()
	if len(tree.parts) > 0 {
		t.Errorf("%d parts are left", len(tree.parts))
	}
	if entries, err := os.ReadDir(tree.cgroup.Path); err == nil {
		for _, entry := range entries {
			if entry.IsDir() {
				t.Errorf("%s is left", entry.Name())
			}
		}
	}
}

func TestAStartTakesWhatWasPrepared(t *testing.T) {
	need.These(t, box.KindCgroup)
	tree := planted(t, guarded(t, box.KindCgroup))
	pid := expects(t, tree)
	p, r := started(t, tree, "echo ready; exec sleep 1000")
	await(t, r, "ready")
	if p.Pid() != pid {
		t.Errorf("process %d is the program, not %d", p.Pid(), pid)
	}
	tree.Expect(t.Context()) // and the next one has its own
	q, _ := started(t, tree, "exec sleep 1000")
	if q.Pid() == pid {
		t.Error("it is taken twice")
	}
}

// A claim that is lost leaves neither process nor cgroup behind, nor does the end of a tree.
func TestNothingIsLeftOfWhatWasPreparedInVain(t *testing.T) {
	need.These(t, box.KindCgroup)
	for name, end := range map[string]func(*Tree) error{
		"another node has won": func(tree *Tree) error { return tree.Relax(t.Context()) },
		"the tree is killed":   func(tree *Tree) error { return tree.Kill(t.Context()) },
		"the tree is ended":    func(tree *Tree) error { return tree.End(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			tree := planted(t, guarded(t, box.KindCgroup))
			pid := expects(t, tree)
			must.OK(t, end(tree))
			gone(t, tree, pid)
			if name != "the tree is ended" { // it can be used again
				_, r := started(t, tree, "echo ready; exec sleep 1000")
				await(t, r, "ready")
			}
		})
	}
}

// P4: and so is nothing when the supervisor is killed before it starts a program, or takes that back. Both guardians hold the process.
func TestWhatWasPreparedDiesWithItsSupervisor(t *testing.T) {
	t.Parallel()
	need.These(t, box.KindCgroup)
	p := newPuppet(t, box.KindCgroup)
	p.do(command{Do: "begin", Epoch: 1})
	p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
	base := p.do(command{Do: "tree", Epoch: 1, Name: "a"}).ID.Path
	pid, held := p.do(command{Do: "expect", Name: "a"}).Pid, 0
	for _, one := range p.guardians() {
		held += holds(t, one, pid)
	}
	if held != 2 {
		t.Errorf("%d guardians hold it", held)
	}
	kill9(p.cmd.Process.Pid)
	until(t, "it is gone, and its cgroup", func() bool {
		_, err := os.Stat(base)
		return unix.Kill(pid, 0) == unix.ESRCH && os.IsNotExist(err)
	})
}

// holds counts a process's descriptors of another process: 1 or 0.
func holds(t *testing.T, process, of int) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(process) + "/fdinfo")
	must.OK(t, err)
	for _, entry := range entries {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(process) + "/fdinfo/" + entry.Name())
		if box.StatusField(text, "Pid") == strconv.Itoa(of) {
			return 1
		}
	}
	return 0
}
