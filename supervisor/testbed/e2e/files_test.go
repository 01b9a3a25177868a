package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// files starts a command with these limits of open files.
func files(soft, hard int, words ...string) []string {
	return append([]string{"sh", "-c", fmt.Sprintf(`ulimit -Sn %d && ulimit -Hn %d && exec "$0" "$@"`, soft, hard)}, words...)
}

// softLimit is how many files a process may have open.
func softLimit(t *testing.T, pid int) (limit int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	must.OK(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			_, err := fmt.Sscan(rest, &limit)
			must.OK(t, err)
		}
	}
	return limit
}

// The supervisor and its guardians use what the hard limit allows, also after an exec that failed; a program gets what the
// supervisor was started with.
func TestTheSoftLimitOfFilesIsRaisedForTheSupervisorAlone(t *testing.T) {
	b, said := kit.Install(t), filepath.Join(t.TempDir(), "limits")
	config := configOf(t, devServer(t), fmt.Sprintf(
		"one: {command: [sh, -c, 'echo `ulimit -Sn` `ulimit -Hn` >>%s; exec sleep 100000'], restart: {policy: always, delay: 10ms}}", said))
	cmd, out := started(t, nil, files(256, 4096, string(b), "run", "--config", config)...)
	programs := func(n int) {
		t.Helper()
		kit.Until(t, soon, fmt.Sprint(n, " programs have started with the limits of the supervisor's start"), func() bool {
			text, _ := os.ReadFile(said)
			return string(text) == strings.Repeat("256 4096\n", n)
		})
	}
	raised := func(when string) {
		t.Helper()
		pids := append(kit.Children(cmd.Process.Pid), cmd.Process.Pid)
		for _, pid := range pids {
			if words := kit.CommandLine(pid); strings.Contains(words, "understudy") && softLimit(t, pid) < 4095 { // Go leaves one
				t.Errorf("%s the soft limit of %q is %d", when, words, softLimit(t, pid))
			}
		}
	}
	programs(1)
	raised("at the start")
	b.Replace(t, kit.Script(t, kit.UnderstudyBinary(t)+` "$@"; rm "$0"`)) // it is good, and gone when it is needed
	must.OK(t, cmd.Process.Signal(syscall.SIGUSR2))
	kit.Until(t, soon, "the exec has failed", out.has("the upgrade is cancelled"))
	raised("after an exec that failed")
	for _, pid := range kit.Children(cmd.Process.Pid) {
		if strings.Contains(kit.CommandLine(pid), "100000") {
			kit.Signal(syscall.SIGKILL, pid)
		}
	}
	programs(2)
	must.OK(t, cmd.Process.Signal(syscall.SIGTERM))
	if code := exitOf(t, cmd); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}
