package fencing

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

func sh(script string, args ...string) Exec {
	return Exec{Command: append([]string{"sh", "-c", script, "sh"}, args...)}
}

func TestCommandIsToldWhomToFence(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	whom := target
	whom.GuardianPid, whom.Address = 77, "db-1:8438"
	err := sh(`env | grep ^UNDERSTUDY_ | sort > "$1"; readlink /proc/$$/fd/0 >> "$1"`, out).Fence(t.Context(), whom)
	must.OK(t, err)
	got, err := os.ReadFile(out)
	must.OK(t, err)
	for _, line := range append(environment(whom), "/dev/null") {
		if !strings.Contains(string(got), line+"\n") {
			t.Errorf("%s is missing in\n%s", line, got)
		}
	}
}

func TestOnlyExitCodeZeroIsSuccess(t *testing.T) {
	for _, test := range []struct {
		method Exec
		want   string // how the error starts; empty: none
	}{
		{sh("exit 0"), ""},
		{sh("echo noise; echo more >&2"), ""},
		{sh("exit 3"), "exit status 3"},
		{sh("echo no route >&2; echo 'to host'; exit 1"), `exit status 1: "no route\nto host"`},
		{sh("kill -9 $$"), "signal: killed"},
		{Exec{Command: []string{"/no/such/program"}}, "start: fork/exec /no/such/program: no such file or directory"},
		{Exec{Command: []string{"no-such-program-anywhere"}}, `start: exec: "no-such-program-anywhere": executable file not found`},
		{Exec{Command: []string{t.TempDir()}}, "start: "},
		{Exec{}, "no command"},
	} {
		err := test.method.Fence(t.Context(), target)
		switch {
		case (err == nil) != (test.want == ""):
			t.Errorf("%q: %v", test.method.Command, err)
		case err != nil && !strings.HasPrefix(err.Error(), test.want):
			t.Errorf("%q: %v, want %s", test.method.Command, err, test.want)
		}
	}
}

// The chain ends a command that hangs, with all that it forked.
func TestHangingCommandIsKilledWithItsGroup(t *testing.T) {
	t.Parallel()
	pids := filepath.Join(t.TempDir(), "pids")
	c := Chain{Steps: []Step{{
		Method:  sh(`trap "" TERM; (trap "" TERM; sleep 1000) & echo $! $$ > "$1"; echo hanging; wait`, pids),
		Timeout: 3 * time.Second, // a busy machine gets it to hang by then
	}}}
	began := time.Now()
	out, err := c.Fence(t.Context(), target, began, nil)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `exec: killed: no answer within 3s: "hanging"`) {
		t.Errorf("%+v, %v", out, err)
	}
	if took := time.Since(began) - c.Steps[0].Timeout; took > time.Minute {
		t.Errorf("took %v after its timeout", took)
	}
	text, err := os.ReadFile(pids)
	must.OK(t, err)
	for word := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(word)
		must.OK(t, err)
		waitGone(t, pid)
	}
}

// waitGone waits until a killed process is gone, or only its zombie is left for init to reap.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %d is alive", pid)
}

func TestDescendantThatKeepsTheOutputOpenDoesNotBlock(t *testing.T) {
	t.Parallel()
	for script, fails := range map[string]bool{
		`setsid sleep 1000 & echo $! > "$1"`:               false,
		`setsid sleep 1000 & echo $! > "$1"; exit 1`:       true,
		`setsid sleep 1000 & echo $! > "$1"; sleep 1000`:   true,
		`sleep 1000 & echo $! > "$1"; exec 1>&- 2>&- 0<&-`: false,
	} {
		file := filepath.Join(t.TempDir(), "pid")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for what ends by itself
		hung := make(chan struct{})
		go func() {
			defer close(hung)
			for again := time.Tick(10 * time.Millisecond); strings.HasSuffix(script, "; sleep 1000") && ctx.Err() == nil; <-again {
				if text, err := os.ReadFile(file); err == nil && strings.HasSuffix(string(text), "\n") {
					cancel()
				}
			}
		}()
		began := time.Now()
		err := sh(script, file).Fence(ctx, target)
		cancel()
		<-hung
		if (err != nil) != fails {
			t.Errorf("%s: %v", script, err)
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("%s: took %v", script, took)
		}
		text, err := os.ReadFile(file)
		must.OK(t, err)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestOnlyTheEndOfHugeOutputIsKept(t *testing.T) {
	err := sh("head -c 30000000 /dev/zero | tr '\\0' x; echo the end; exit 1").Fence(t.Context(), target)
	if err == nil || len(err.Error()) > tailSize+100 || !strings.HasSuffix(err.Error(), `xthe end"`) || !strings.Contains(err.Error(), `"...x`) {
		t.Errorf("%.100v", err)
	}
}

func TestEndedContextStartsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	ctx, cancel := context.WithCancelCause(t.Context())
	errLost := errors.New("lock lost")
	cancel(errLost)
	if err := sh(`touch "$1"`, file).Fence(ctx, target); !errors.Is(err, errLost) {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it ran")
	}
}
