package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

const strangerID = 65534

// strangers are whose processes may look like root's supervisors: those of another user, and of root in a container.
var strangers = map[string]syscall.SysProcAttr{
	"another user":        {Setpgid: true, Credential: &syscall.Credential{Uid: strangerID, Gid: strangerID}},
	"root in a container": {Setpgid: true, Cloneflags: syscall.CLONE_NEWPID},
}

// lookalike is a stranger's process that looks as a supervisor started from a binary does, with any words. It notes SIGUSR2.
type lookalike struct {
	pid int
	dir string
}

// letIn lets everybody into the folders of a file that t.TempDir made.
func letIn(t *testing.T, file string) {
	t.Helper()
	dir := filepath.Dir(file)
	must.OK(t, os.Chmod(dir, 0o755))
	must.OK(t, os.Chmod(filepath.Dir(dir), 0o755))
}

func startLookalike(t *testing.T, who syscall.SysProcAttr, b kit.Binary, words ...string) lookalike {
	t.Helper()
	l := lookalike{dir: t.TempDir()}
	letIn(t, filepath.Join(l.dir, "run"))
	must.OK(t, os.Chown(l.dir, strangerID, strangerID))
	const text = "trap 'echo > signalled' USR2\nsleep 1000 & echo > ready\nwhile :; do wait; done\n"
	must.OK(t, os.WriteFile(filepath.Join(l.dir, "run"), []byte(text), 0o644))
	cmd := exec.Command("/bin/sh")
	cmd.Args, cmd.Dir = append([]string{string(b), "run"}, words...), l.dir
	cmd.SysProcAttr = &who
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	l.pid = cmd.Process.Pid
	kit.Until(t, soon, "the stranger's process runs", func() bool { return l.has("ready") })
	return l
}

func (l lookalike) has(name string) bool {
	_, err := os.Stat(filepath.Join(l.dir, name))
	return err == nil
}

func rootReexec(t *testing.T, b kit.Binary, words ...string) kit.Result {
	t.Helper()
	cmd := exec.Command(kit.UnderstudyBinary(t), append([]string{"reexec", "--binary", string(b), "--timeout", "20s"}, words...)...)
	out, _ := cmd.CombinedOutput() // the code tells
	return kit.Result{Out: string(out), Code: cmd.ProcessState.ExitCode()}
}

// By its words and its binary anybody's process can look like a supervisor. Root's reexec takes root's.
func TestReexecLeavesAStrangersProcessAlone(t *testing.T) {
	kit.NeedHosts(t)
	for name, who := range strangers {
		t.Run(name, func(t *testing.T) {
			b := kit.Install(t)
			letIn(t, string(b))
			l := startLookalike(t, who, b, "--service", "x", "--zk", "127.0.0.1:1", "--", "sleep", "1")
			r := rootReexec(t, b)
			if r.Code != 1 || !strings.Contains(r.Out, "no supervisor of this user runs here") || strings.Contains(r.Out, strconv.Itoa(l.pid)) || l.has("signalled") {
				t.Errorf("reexec ended with %d: %s (signalled: %v)", r.Code, r.Out, l.has("signalled"))
			}
		})
	}
}

// A supervisor of another user that is named is sent the signal. Nothing is started with what that user has chosen.
func TestReexecOnlySignalsANamedStranger(t *testing.T) {
	kit.NeedHosts(t)
	for name, who := range strangers {
		t.Run(name, func(t *testing.T) {
			b := kit.Install(t)
			letIn(t, string(b))
			tried := filepath.Join(t.TempDir(), "tried")
			b.Replace(t, kit.Script(t, "echo >"+tried))
			l := startLookalike(t, who, b, "--service", "x", "--zk", "127.0.0.1:1", "--", "sleep", "1")
			r := rootReexec(t, b, "--pid", strconv.Itoa(l.pid))
			if r.Code != 0 || !strings.Contains(r.Out, fmt.Sprintf("supervisor %d is another user's", l.pid)) {
				t.Errorf("ended with %d: %s", r.Code, r.Out)
			}
			kit.Until(t, soon, "it is signalled", func() bool { return l.has("signalled") })
			if _, err := os.Stat(tried); err == nil {
				t.Error("the binary is tried with a stranger's words")
			}
		})
	}
}
