package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// devServer is an embedded ZooKeeper for the test.
func devServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	at := listener.Addr().String()
	must.OK(t, listener.Close())
	_, out := started(t, nil, kit.UnderstudyBinary(t), "dev", "--listen", at)
	kit.Until(t, soon, "dev serves", out.has("NOT FOR PRODUCTION"))
	return at
}

// configOf is a config file with these services, a line each.
func configOf(t *testing.T, zk string, services ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "understudy.yaml")
	rewrite(t, file, zk, services...)
	return file
}

func rewrite(t *testing.T, file, zk string, services ...string) {
	t.Helper()
	text := "node: one\nzookeeper: {servers: [\"" + zk + "\"], lease: 6s}\nservices:\n  " + strings.Join(services, "\n  ") + "\n"
	must.OK(t, os.WriteFile(file+"~", []byte(text), 0o600))
	must.OK(t, os.Rename(file+"~", file))
}

func idlers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("s%d: {command: [sleep, '100000']}", i))
	}
	return all
}

func (o *output) count(word string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Count(o.text.String(), word)
}

// exitOf waits for a command's end.
func exitOf(t *testing.T, cmd *exec.Cmd) (code int) {
	t.Helper()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatalf("%v has not ended", cmd.Args)
	}
	return cmd.ProcessState.ExitCode()
}

// taskLimit makes a cgroup that lets so many tasks in, where the kernel counts them: in a hierarchy of its own, or in cgroup v2.
func taskLimit(t *testing.T, most int) (dir string) {
	t.Helper()
	for _, base := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		if controllers, err := os.ReadFile(filepath.Join(base, "cgroup.controllers")); err == nil && slices.Contains(strings.Fields(string(controllers)), "pids") {
			must.OK(t, os.WriteFile(filepath.Join(base, "cgroup.subtree_control"), []byte("+pids"), 0))
		}
		dir = filepath.Join(base, fmt.Sprint("understudy-test-", os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		t.Cleanup(func() {
			kit.Until(t, soon, dir+" is removed", func() bool { return syscall.Rmdir(dir) == nil || os.IsNotExist(syscall.Rmdir(dir)) })
		})
		if os.WriteFile(filepath.Join(dir, "pids.max"), []byte(strconv.Itoa(most)), 0) == nil {
			return dir
		}
	}
	t.Fatal("tasks cannot be limited here: no pids controller")
	return ""
}

// into starts a command inside a cgroup.
func into(t *testing.T, cgroup string, words ...string) (*exec.Cmd, *output) {
	t.Helper()
	return started(t, nil, append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs"; exec "$@"`, cgroup}, words...)...)
}

// A program takes all tasks there are, and each that becomes free, while thirty others start, end, and are started again.
func TestTheTaskLimitKillsNeitherSupervisorNorGuardian(t *testing.T) {
	need.These(t, "root")
	dir := taskLimit(t, 100)
	logs := t.TempDir()
	services := []string{
		`greedy: {stop_timeout: 1s, command: [perl, -e, 'while (1) { my $p = fork; if (!defined $p) { select undef, undef, undef, 0.005 } elsif (!$p) { sleep 1000; exit } }']}`,
	}
	for i := range 30 {
		services = append(services, fmt.Sprintf("s%d: {command: [sleep, '1'], log: {file: %s/%d.log}, health: {exec: [\"true\"], interval: 500ms, timeout: 1s, failures: 3}, "+
			"restart: {policy: always, delay: 200ms, max_delay: 300ms, give_up_after: 100, within: 10m}}", i, logs, i))
	}
	cmd, out := into(t, dir, kit.UnderstudyBinary(t), "run", "--config", configOf(t, devServer(t), services...))
	refused := func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "pids.events"))
		n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(text), "max")))
		return n
	}
	kit.Until(t, soon, "a start is refused in words", out.has("a limit of tasks is reached"))
	before := refused()
	kit.Until(t, time.Minute, "the kernel refuses 300 tasks", func() bool { return refused() > before+300 || !kit.Alive(cmd.Process.Pid) })
	if !kit.Alive(cmd.Process.Pid) {
		t.Fatal("the supervisor is dead")
	}
	must.OK(t, cmd.Process.Signal(syscall.SIGTERM))
	if code := exitOf(t, cmd); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	for _, word := range []string{"guardian replaced", "guardian not replaced", "guardians lost"} {
		if out.has(word)() {
			t.Errorf("its log says %q", word)
		}
	}
	kit.Until(t, soon, "nothing is left", func() bool {
		left, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		return err == nil && len(left) == 0
	})
}
