package child

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/guard"
)

// catching starts a catcher, and has it catch the signals of this process.
func catching(t *testing.T) *Catcher {
	t.Helper()
	c, err := StartCatcher()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Catch(); err != nil {
		t.Fatal(err)
	}
	return c
}

// tracer is the process that traces this one, "0" when there is none.
func tracer(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "TracerPid:")
	first, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(first)
}

func TestWhatIsCaughtComesOnceItIsReleased(t *testing.T) {
	came := make(chan os.Signal, 8)
	signal.Notify(came, unix.SIGUSR1, unix.SIGHUP)
	defer signal.Stop(came)
	passed := make(chan os.Signal, 1)
	signal.Notify(passed, unix.SIGWINCH)
	defer signal.Stop(passed)
	c := catching(t)
	if by := tracer(t); by == "0" { // it is a thread of the catcher
		t.Error("nobody traces this process")
	} else if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%s", c.process.Pid, by)); err != nil {
		t.Errorf("traced by another than the catcher: %v", err)
	}
	for _, sig := range []unix.Signal{unix.SIGUSR1, unix.SIGHUP} {
		if err := unix.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	select {
	case sig := <-came:
		t.Errorf("%v is not caught", sig)
	case <-passed: // which nobody catches
	}
	if err := c.Release(); err != nil {
		t.Error(err)
	}
	if by := tracer(t); by != "0" {
		t.Errorf("still traced by %s", by)
	}
	for seen := map[os.Signal]bool{}; !seen[unix.SIGUSR1] || !seen[unix.SIGHUP]; {
		select {
		case sig := <-came:
			seen[sig] = true
		case <-time.After(patience):
			t.Fatalf("only %v came", seen)
		}
	}
}

// Whenever a signal comes, it comes once if the catcher ends as it should, and is not lost if it is killed.
func TestNoSignalIsLostAtACatchersEnd(t *testing.T) {
	came := make(chan os.Signal, 8)
	signal.Notify(came, unix.SIGUSR1)
	defer signal.Stop(came)
	ended := func(c *Catcher, after time.Duration) {
		t.Helper()
		sent := make(chan error, 1)
		go func() {
			for until := Now() + after; Now() < until; {
				continue
			}
			sent <- unix.Kill(os.Getpid(), unix.SIGUSR1)
		}()
		if err := c.Release(); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		select {
		case <-came:
		case <-time.After(patience):
			t.Fatalf("a signal after %v is lost", after)
		}
	}
	for i := range 40 {
		ended(catching(t), time.Duration(i)*15*time.Microsecond)
	}
	if len(came) > 0 {
		t.Error("a signal came twice")
	}
	for i := range 20 {
		c := catching(t)
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		ended(c, time.Duration(i)*15*time.Microsecond)
	}
}

func TestACatcherTracesNobodyButItsParent(t *testing.T) {
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	c, err := StartCatcher()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.link.send(&guard.Message{Op: opCatch, Number: other.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	if err := c.ready(patience); err == nil {
		t.Error("it traces another process")
	}
	if err := c.Release(); err != nil {
		t.Error(err)
	}
}

func TestACatcherThatIsForgottenLetsGo(t *testing.T) {
	c := catching(t)
	for limit := time.Now().Add(catchLimit + patience); tracer(t) != "0"; {
		if time.Now().After(limit) {
			t.Fatal("it holds on")
		}
		pollOne(-1, 0, 10*time.Millisecond)
	}
	if err := c.Release(); err != nil {
		t.Error(err)
	}
}

// Whatever becomes of a catcher before it has said a word, who starts it goes on.
func TestACatcherThatSaysNothingIsNotWaitedForForEver(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"it ends at once", []string{"true"}},
		{"it never speaks", []string{"sleep", "1000"}},
		{"somebody else has its socket too", []string{"sh", "-c", "sleep 25 & exec sleep 1000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			exe, err := exec.LookPath(c.args[0])
			if err != nil {
				t.Fatal(err)
			}
			over := make(chan error, 1)
			go func() {
				_, err := startCatcher(catcherLimit, exe, c.args...)
				over <- err
			}()
			select {
			case err := <-over:
				if err == nil {
					t.Error("it is taken for one that waits for its order")
				}
			case <-time.After(patience):
				t.Fatal("it is waited for")
			}
		})
	}
}
