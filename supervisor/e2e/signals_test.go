package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
)

// polite is a program that notes that it was asked to end, and takes a moment for that.
const polite = `trap 'echo asked >>"$0"; exit 0' TERM; echo begun >>"$0"; while :; do sleep 1000 & wait; done`

// upgrading starts a supervisor with one polite program, and has it become another image of itself. It returns when that begins.
func upgrading(t *testing.T, zk, name string) (cmd *exec.Cmd, out *output, notes string) {
	t.Helper()
	notes = filepath.Join(t.TempDir(), "notes")
	cmd, out = upgradingBy(t, notes, "--zk", zk, "--node", name, "--service", name, "--", "sh", "-c", polite, notes)
	return cmd, out, notes
}

func upgradingBy(t *testing.T, notes string, words ...string) (cmd *exec.Cmd, out *output) {
	t.Helper()
	cmd, out = started(t, nil, append([]string{kit.UnderstudyBinary(t), "run"}, words...)...)
	begun := func() bool {
		text, _ := os.ReadFile(notes)
		return string(text) == "begun\n"
	}
	kit.Until(t, soon, "the program runs", begun)
	kit.Until(t, soon, "the service is recorded", out.has("to=active"))
	must(t, cmd.Process.Signal(syscall.SIGUSR2))
	const begins = "handing over to another image"
	for limit := time.Now().Add(soon); !out.has(begins)(); {
		if time.Now().After(limit) {
			t.Fatalf("no upgrade: %s", out.text.String())
		}
	}
	return cmd, out
}

// afterwards waits for a moment that is only so many milliseconds away.
func afterwards(d time.Duration) { <-time.After(d) }

// An exec takes some 25 ms until all goes on. Whenever an order to stop comes, it is carried out: the program is asked, or, in the
// few milliseconds in which no handler of Go is there, the supervisor ends as of a crash. It is never lost, and no other end is.
func TestAnOrderToStopIsNotLostAtAnyMomentOfAnUpgrade(t *testing.T) {
	zk := devServer(t)
	const n = 24
	lost, unasked := 0, 0
	for i := range n {
		cmd, out, notes := upgrading(t, zk, fmt.Sprint("stop-", i))
		afterwards(time.Duration(i) * 750 * time.Microsecond)
		must(t, cmd.Process.Signal(syscall.SIGTERM))
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(6 * time.Second):
			lost++
			kit.Signal(syscall.SIGKILL, cmd.Process.Pid)
			<-ended
			continue
		}
		text, _ := os.ReadFile(notes)
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		switch {
		case out.has("could not be given back")():
			t.Errorf("after %d ms the lock was not given back:\n%s", i, out.text.String())
		case string(text) == "begun\nasked\n" && status.ExitStatus() == 0:
		case string(text) == "begun\n" && status.Signaled() && status.Signal() == syscall.SIGTERM:
			unasked++
		default:
			t.Errorf("the program notes %q, and the supervisor ended with %v:\n%s", text, cmd.ProcessState, out.text.String())
		}
	}
	t.Logf("of %d orders, %d came while nobody could hear them", n, unasked)
	if lost > 0 {
		t.Errorf("of %d orders to stop %d were lost", n, lost)
	}
}

// Nobody ends of a question for the config, or of another upgrade, in the middle of one; and then it still stops as ever.
func TestOtherSignalsAreHarmlessAtEveryMomentOfAnUpgrade(t *testing.T) {
	zk := devServer(t)
	for _, sig := range []syscall.Signal{syscall.SIGUSR2, syscall.SIGHUP} {
		for i := range 6 {
			notes := filepath.Join(t.TempDir(), "notes")
			config := configOf(t, zk, fmt.Sprintf("other-%d-%d: {command: [sh, -c, '%s', %s]}", sig, i, strings.ReplaceAll(polite, "'", "''"), notes))
			cmd, out := upgradingBy(t, notes, "--config", config)
			afterwards(time.Duration(i) * 6 * time.Millisecond)
			must(t, cmd.Process.Signal(sig))
			kit.Until(t, soon, "it goes on", out.has("going on where the former image"))
			kit.Until(t, soon, "the service, too", out.has("from=offline to=active"))
			must(t, cmd.Process.Signal(syscall.SIGTERM))
			if code := exitOf(t, cmd); code != 0 {
				t.Errorf("after %v it ended with %d", sig, code)
			}
			if text, _ := os.ReadFile(notes); string(text) != "begun\nasked\n" {
				t.Errorf("after %v the program notes %q", sig, text)
			}
		}
	}
}
