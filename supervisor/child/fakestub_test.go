package child

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/testbed/must"
)

// fakeStub is a process of a stranger's with the name of a tree's stubs. It says that all below it are dead.
func fakeStub(t *testing.T, mark string, as *syscall.SysProcAttr) int {
	t.Helper()
	dir, err := os.MkdirTemp("", "fake")
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	exe := filepath.Join(dir, mark)
	saw, err := box.NewDeadSignal()
	if err == nil {
		err = errors.Join(box.Ring(int(saw.Fd())), os.Symlink("/bin/sh", exe), os.Chmod(dir, 0o755))
	}
	must.OK(t, err)
	defer saw.Close()
	cmd := exec.Command(exe, "-c", "trap 'kill $!; exit' TERM; sleep 1000 >/dev/null & echo ready; wait")
	cmd.ExtraFiles = []*os.File{os.Stderr, saw} // as a stub's socket and its dead signal
	cmd.SysProcAttr = as
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	await(t, out.(*os.File), "ready")
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Signal(unix.SIGTERM); <-ended })
	if s, err := box.StatOf(cmd.Process.Pid); err != nil || s.Comm != mark {
		t.Fatalf("it is named %q: %v", s.Comm, err)
	}
	return cmd.Process.Pid
}

var (
	anotherUser   = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	ofAContainer  = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	ofTheSameUser = &syscall.SysProcAttr{}
)

// orphanedTree is the identity of a tree whose supervisor and guardians were killed at once. The stub lives if it is a walked tree's
// and is stopped, as it is on request.
func orphanedTree(t *testing.T, kind string) (id box.TreeID, stubs []box.Stat) {
	t.Helper()
	p := newPuppet(t, kind)
	p.do(command{Do: "begin", Epoch: 1})
	p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
	id = p.do(command{Do: "tree", Epoch: 1, Name: "a"}).ID
	p.do(command{Do: "start", Name: "a", Script: "echo ready; exec sleep 1000"})
	p.ready()
	stubs, err := id.Stubs()
	if err != nil || len(stubs) != 1 {
		t.Fatalf("stubs: %v, %v", stubs, err)
	}
	all := append(p.guardians(), p.cmd.Process.Pid)
	for _, pid := range append(all, stubs[0].Pid) {
		freeze(t, pid)
	}
	kill9(all...)
	awaitDeath(t, all...)
	return id, stubs
}

// A process of another user does not pass for a stub: a walked tree that has lost its own stays unproved, whatever that one says.
func TestAStrangersProcessProvesNoDeathOfAWalkedTree(t *testing.T) {
	need.These(t, "root")
	needKind(t, box.KindWalk)
	id, stubs := orphanedTree(t, box.KindWalk)
	all, err := box.Processes()
	must.OK(t, err)
	rest := box.Descendants(all, stubs[0].Pid)
	kill9(stubs[0].Pid)
	awaitDeath(t, stubs[0].Pid)
	elsewhere := id
	elsewhere.UserNS++
	for _, c := range []struct {
		name string
		id   box.TreeID
		as   *syscall.SysProcAttr
	}{
		{"another user's", id, anotherUser},
		{"root's in a container", id, ofAContainer},
		{"of a tree in another user namespace", elsewhere, ofTheSameUser}, // last: for the others it would be a stub
	} {
		fakeStub(t, id.Mark, c.as)
		if dead, err := box.ProveDead(c.id); dead {
			t.Errorf("%s: dead %v", c.name, err)
		}
		if err := box.KillByID(t.Context(), c.id); !errors.Is(err, box.ErrUnproved) && !errors.Is(err, box.ErrElsewhere) {
			t.Errorf("%s: kill: %v", c.name, err)
		}
	}
	for _, s := range rest {
		kill9(s.Pid)
	}
}

// Nor does it keep a dead tree from being proved dead.
func TestAStrangersProcessPreventsNoProof(t *testing.T) {
	need.These(t, "root")
	needKind(t, box.KindPidNS)
	id, stubs := orphanedTree(t, box.KindPidNS)
	awaitDeath(t, stubs[0].Pid)
	fake := fakeStub(t, id.Mark, anotherUser)
	if dead, err := box.ProveDead(id); !dead || err != nil {
		t.Errorf("dead %v, %v", dead, err)
	}
	must.Report(t, box.KillByID(t.Context(), id))
	if s, err := box.StatOf(fake); err != nil || !s.Alive() {
		t.Errorf("the stranger's is killed: %v, %v", s, err)
	}
}

// What a process holds in a dead signal's place is asked nothing: it may be a file that never answers.
func TestOnlyAnEventIsADeadSignal(t *testing.T) {
	need.These(t, "root")
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.ExtraFiles = []*os.File{os.Stderr, os.Stderr}
	must.OK(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	s, err := box.StatOf(cmd.Process.Pid)
	must.OK(t, err)
	if b, err := (box.TreeID{Kind: box.KindWalk}).Hold(s); !errors.Is(err, box.ErrUnproved) {
		t.Errorf("%v, %v", b, err)
	}
}
