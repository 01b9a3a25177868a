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
)

const strangerID = 65534

// lookalike is a stranger's process that looks as a supervisor started from a binary does, with any words. It notes SIGUSR2.
type lookalike struct {
	pid int
	dir string
}

// letIn lets everybody into the folders of a file that t.TempDir made.
func letIn(t *testing.T, file string) {
	t.Helper()
	dir := filepath.Dir(file)
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
}

func startLookalike(t *testing.T, b kit.Binary, words ...string) lookalike {
	t.Helper()
	l := lookalike{dir: t.TempDir()}
	letIn(t, filepath.Join(l.dir, "run"))
	must(t, os.Chown(l.dir, strangerID, strangerID))
	const text = "trap 'echo > signalled' USR2\nsleep 1000 & echo > ready\nwhile :; do wait; done\n"
	must(t, os.WriteFile(filepath.Join(l.dir, "run"), []byte(text), 0o644))
	cmd := exec.Command("/bin/sh")
	cmd.Args, cmd.Dir = append([]string{string(b), "run"}, words...), l.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: strangerID, Gid: strangerID}}
	must(t, cmd.Start())
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
	cmd := exec.Command(string(b), append([]string{"reexec", "--binary", string(b), "--timeout", "2s"}, words...)...)
	out, _ := cmd.CombinedOutput() // the code tells
	return kit.Result{Out: string(out), Code: cmd.ProcessState.ExitCode()}
}

// By its words and its binary anybody's process can look like a supervisor. Root's reexec takes root's.
func TestReexecLeavesAStrangersProcessAlone(t *testing.T) {
	kit.NeedHosts(t)
	b := kit.Install(t)
	letIn(t, string(b))
	fine := []string{"--service", "x", "--zk", "127.0.0.1:1", "--", "sleep", "1"}
	for _, words := range [][]string{nil, {"--all"}} {
		l := startLookalike(t, b, fine...)
		r := rootReexec(t, b, words...)
		if r.Code != 1 || !strings.Contains(r.Out, "no supervisor of this user runs here") || strings.Contains(r.Out, strconv.Itoa(l.pid)) || l.has("signalled") {
			t.Errorf("reexec %v ended with %d: %s (signalled: %v)", words, r.Code, r.Out, l.has("signalled"))
		}
	}
}

// A supervisor of another user that is named is asked, but what it was started with is tried as that user.
func TestReexecTriesTheWordsOfANamedStrangerAsThatUser(t *testing.T) {
	kit.NeedHosts(t)
	b := kit.Install(t)
	letIn(t, string(b))
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("the-secret-of-root: 1\n"), 0o600))
	l := startLookalike(t, b, "--config", secret)
	r := rootReexec(t, b, "--pid", strconv.Itoa(l.pid))
	if r.Code != 1 || strings.Contains(r.Out, "the-secret-of-root") || !strings.Contains(r.Out, "permission denied") || l.has("signalled") {
		t.Errorf("ended with %d: %s", r.Code, r.Out)
	}
	l = startLookalike(t, b, "--service", "x", "--zk", "127.0.0.1:1", "--", "sleep", "1")
	r = rootReexec(t, b, "--pid", strconv.Itoa(l.pid))
	if !l.has("signalled") || !strings.Contains(r.Out, fmt.Sprintf("supervisor %d: it goes on as before", l.pid)) {
		t.Errorf("ended with %d: %s (signalled: %v)", r.Code, r.Out, l.has("signalled"))
	}
}
