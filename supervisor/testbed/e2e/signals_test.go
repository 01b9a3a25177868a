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

	"understudy/supervisor/testbed/kit"
)

// polite is a program that notes that it was asked to end, and takes a moment for that.
const polite = `trap 'echo asked >>"$0"; exit 0' TERM; echo begun >>"$0"; while :; do sleep 1000 & wait; done`

// upgrading starts a supervisor with one polite program, and has it become what is in its binary's place. It returns when that begins.
func upgrading(t *testing.T, binary, zk, name string, before func()) (cmd *exec.Cmd, out *output, notes string) {
	t.Helper()
	notes = filepath.Join(t.TempDir(), "notes")
	cmd, out = upgradingBy(t, notes, before, binary, "run", "--zk", zk, "--node", name, "--service", name, "--stop-timeout", "2s", "--", "sh", "-c", polite, notes)
	return cmd, out, notes
}

func upgradingBy(t *testing.T, notes string, before func(), words ...string) (cmd *exec.Cmd, out *output) {
	t.Helper()
	cmd, out = started(t, nil, words...)
	begun := func() bool {
		text, _ := os.ReadFile(notes)
		return string(text) == "begun\n"
	}
	kit.Until(t, soon, "the program runs", begun)
	kit.Until(t, soon, "the service is recorded", out.has("to=active"))
	before()
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

// orders counts what becomes of orders to stop.
type orders struct {
	zk     string
	binary string
	before func() // before the upgrade

	given, lost, unasked int
}

func ordering(t *testing.T) *orders {
	return &orders{zk: devServer(t), binary: kit.UnderstudyBinary(t), before: func() {}}
}

// follow has a supervisor become another image, have it ordered to stop meanwhile, and counts.
func (o *orders) follow(t *testing.T, order func(*exec.Cmd)) {
	t.Helper()
	cmd, out, notes := upgrading(t, o.binary, o.zk, fmt.Sprint("stop-", o.given), o.before)
	o.given++
	order(cmd)
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(6 * time.Second):
		o.lost++
		t.Logf("not ended:\n%s", out.text.String())
		kit.Signal(syscall.SIGKILL, cmd.Process.Pid)
		<-ended
		return
	}
	text, _ := os.ReadFile(notes)
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case out.has("cannot give the lock back")():
		t.Errorf("order %d: the lock was not given back:\n%s", o.given, out.text.String())
	case string(text) == "begun\nasked\n" && status.ExitStatus() == 0:
	case string(text) == "begun\n" && status.Signaled() && status.Signal() == syscall.SIGTERM:
		o.unasked++
	default:
		t.Errorf("order %d: the program notes %q, and the supervisor ended with %v:\n%s", o.given, text, cmd.ProcessState, out.text.String())
	}
}

func (o *orders) inOrder(t *testing.T) {
	t.Helper()
	if o.lost > 0 || o.unasked > 0 {
		t.Errorf("of %d orders to stop %d were lost, and %d ended the supervisor before its program was asked", o.given, o.lost, o.unasked)
	}
}

// An exec takes some 10 ms until all goes on, and Go can hear nothing for a few of these. Whenever an order to stop comes, it is
// carried out in order.
func TestAnOrderToStopIsCarriedOutAtEveryMomentOfAnUpgrade(t *testing.T) {
	got := ordering(t)
	for i := range 80 {
		got.follow(t, func(cmd *exec.Cmd) {
			afterwards(time.Duration(i) * 200 * time.Microsecond)
			must(t, cmd.Process.Signal(syscall.SIGTERM))
		})
	}
	got.inOrder(t)
}

// A binary that answers well may be gone a moment later.
func TestAnOrderToStopIsCarriedOutWhenTheExecFails(t *testing.T) {
	got := ordering(t)
	for i := range 16 {
		b := kit.Install(t)
		got.binary = string(b)
		got.before = func() {
			real := kit.UnderstudyBinary(t)
			b.Replace(t, kit.Script(t, fmt.Sprintf(`echo garbage >"$0~"; chmod +x "$0~"; mv "$0~" "$0"; exec %s "$@"`, real)))
		}
		got.follow(t, func(cmd *exec.Cmd) {
			afterwards(time.Duration(i) * 500 * time.Microsecond)
			must(t, cmd.Process.Signal(syscall.SIGTERM))
		})
	}
	got.inOrder(t)
}

// Without the process that keeps it an order to stop may end the supervisor as a crash does, but it is not lost.
func TestAnOrderToStopIsNotLostWithTheProcessThatKeepsIt(t *testing.T) {
	got := ordering(t)
	killed := 0
	for i := range 16 {
		got.follow(t, func(cmd *exec.Cmd) {
			var keepers []int
			for _, pid := range kit.Children(cmd.Process.Pid) {
				if strings.Contains(kit.CommandLine(pid), "keeps signals") {
					keepers = append(keepers, pid)
				}
			}
			afterwards(time.Duration(i) * 500 * time.Microsecond)
			for _, pid := range keepers {
				killed++
				kit.Signal(syscall.SIGKILL, pid)
			}
			must(t, cmd.Process.Signal(syscall.SIGTERM))
		})
	}
	if got.lost > 0 {
		t.Errorf("of %d orders to stop %d were lost", got.given, got.lost)
	}
	t.Logf("%d processes were killed, %d orders were carried out as a crash", killed, got.unasked)
}

// Nobody ends of a question for the config, or of another upgrade, in the middle of one; and then it still stops as ever.
func TestOtherSignalsAreHarmlessAtEveryMomentOfAnUpgrade(t *testing.T) {
	zk := devServer(t)
	for _, sig := range []syscall.Signal{syscall.SIGUSR2, syscall.SIGHUP} {
		for i := range 6 {
			notes := filepath.Join(t.TempDir(), "notes")
			config := configOf(t, zk, fmt.Sprintf("other-%d-%d: {command: [sh, -c, '%s', %s]}", sig, i, strings.ReplaceAll(polite, "'", "''"), notes))
			cmd, out := upgradingBy(t, notes, func() {}, kit.UnderstudyBinary(t), "run", "--config", config)
			afterwards(time.Duration(i) * 6 * time.Millisecond)
			must(t, cmd.Process.Signal(sig))
			kit.Until(t, soon, "it goes on", out.has("continuing after the upgrade"))
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
