package kit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// Supervisor is one `understudy run`, seen from outside.
type Supervisor struct {
	Host *Host
	Pid  int

	cmd   *exec.Cmd
	log   string
	ended chan struct{}

	mu        sync.Mutex     // guards the fields below
	guardians map[int]string // that were seen, and when each began: a number is given again
}

// Options are the flags of `understudy run`. What is zero is left to the program.
type Options struct {
	ZK             []string
	Root, Service  string
	Session, Grace time.Duration // of ZooKeeper: two leases
	StopTimeout    time.Duration
	Flags          []string // more of them
	Binary         string   // the program under test when empty
	Child          []string
}

func (o Options) args(h *Host) []string {
	args := []string{"run", "--zk", strings.Join(o.ZK, ","), "--node", h.Name, "--service", o.Service}
	if o.Root != "" {
		args = append(args, "--root", o.Root)
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"--lease", o.Session / 2}, {"--grace", o.Grace}, {"--stop-timeout", o.StopTimeout}} {
		if d.value != 0 {
			args = append(args, d.flag, d.value.String())
		}
	}
	return append(append(append(args, o.Flags...), "--"), o.Child...)
}

// Supervise starts `understudy run` on the host. When the test ends it is stopped, or killed with all it started.
func (h *Host) Supervise(tb testing.TB, o Options) *Supervisor {
	tb.Helper()
	if o.Binary == "" {
		o.Binary = UnderstudyBinary(tb)
	}
	return h.UnderstudyAt(tb, o.Binary, o.args(h)...)
}

// Understudy starts any command of understudy that goes on until it is stopped.
func (h *Host) Understudy(tb testing.TB, args ...string) *Supervisor {
	tb.Helper()
	return h.UnderstudyAt(tb, UnderstudyBinary(tb), args...)
}

// UnderstudyAt is Understudy with a binary of the test's own.
func (h *Host) UnderstudyAt(tb testing.TB, binary string, args ...string) *Supervisor {
	tb.Helper()
	log, err := os.CreateTemp(tb.TempDir(), h.Name+"-*.log")
	must.OK(tb, err)
	defer log.Close()
	cmd := h.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = filepath.Dir(log.Name())
	if err := start(cmd); err != nil {
		tb.Fatalf("start understudy: %v", err)
	}
	s := &Supervisor{Host: h, Pid: cmd.Process.Pid, cmd: cmd, log: log.Name(), ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the exit code is read from ProcessState
		close(s.ended)
	}()
	tb.Cleanup(s.end)
	return s
}

// end stops the supervisor and kills what does not stop.
func (s *Supervisor) end() {
	s.Guardians()
	Signal(syscall.SIGCONT, s.all()...)
	if s.Running() {
		s.Signal(syscall.SIGTERM)
		select {
		case <-s.ended:
		case <-time.After(3 * time.Second):
		}
	}
	Signal(syscall.SIGKILL, s.all()...)
	<-s.ended
}

// all is the supervisor while it runs, and the guardians that were seen and still are guardians.
func (s *Supervisor) all() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pids []int
	for pid, began := range s.guardians {
		if IsGuardian(pid) && born(pid) == began {
			pids = append(pids, pid)
		}
	}
	if s.Running() {
		pids = append(pids, s.Pid)
	}
	return pids
}

// IsGuardian tells whether a process is a guardian.
func IsGuardian(pid int) bool { return strings.Contains(CommandLine(pid), "guardian") }

// Guardians returns the pids of the supervisor's guardians, as far as it lives.
func (s *Supervisor) Guardians() []int {
	if !s.Running() {
		return nil // its number may be another's by now
	}
	found := slices.DeleteFunc(Children(s.Pid), func(pid int) bool { return !IsGuardian(pid) || !Alive(pid) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guardians == nil {
		s.guardians = map[int]string{}
	}
	for _, pid := range found {
		s.guardians[pid] = born(pid)
	}
	return found
}

// TwoGuardians waits for both guardians.
func (s *Supervisor) TwoGuardians(tb testing.TB) []int {
	tb.Helper()
	var found []int
	Until(tb, Soon, s.Host.Name+" has two guardians", func() bool {
		found = s.Guardians()
		return len(found) == 2
	})
	return found
}

// Signal sends a signal to the supervisor alone.
func (s *Supervisor) Signal(sig syscall.Signal) {
	if s.Running() {
		Signal(sig, s.Pid)
	}
}

// Kill9 kills the supervisor alone and waits until it is gone.
func (s *Supervisor) Kill9() {
	s.Guardians()
	s.Signal(syscall.SIGKILL)
	<-s.ended
}

// Running tells whether the supervisor itself has not ended.
func (s *Supervisor) Running() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// Ended is closed when the supervisor has ended.
func (s *Supervisor) Ended() <-chan struct{} { return s.ended }

// ExitCode waits for the supervisor's end.
func (s *Supervisor) ExitCode(tb testing.TB, limit time.Duration) int {
	tb.Helper()
	select {
	case <-s.ended:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		tb.Fatalf("%s has not ended after %v", s.Host.Name, limit)
		return -1
	}
}

// Stop ends the supervisor in the orderly way.
func (s *Supervisor) Stop(tb testing.TB) {
	tb.Helper()
	s.Signal(syscall.SIGTERM)
	if code := s.ExitCode(tb, Soon); code != 0 {
		tb.Errorf("%s ended with %d after SIGTERM", s.Host.Name, code)
	}
}

// Log is what the supervisor and its child wrote so far.
func (s *Supervisor) Log() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	const most = 200 << 10
	if len(text) > most {
		text = append([]byte("...\n"), text[len(text)-most:]...)
	}
	return string(text)
}

// Says tells whether a line of the log holds all the words, in any case.
func (s *Supervisor) Says(words ...string) bool {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(bytes.ToLower(text)) {
		if !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(line, []byte(strings.ToLower(w))) }) {
			return true
		}
	}
	return false
}

// Result is what a command that ends by itself did.
type Result struct {
	Out, Err string
	Code     int
}

// Ask runs a command of understudy to its end.
func (h *Host) Ask(tb testing.TB, args ...string) Result {
	tb.Helper()
	cmd := h.Command(UnderstudyBinary(tb), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		tb.Fatalf("understudy %q: %v", args, err)
	}
	return Result{Out: out.String(), Err: errs.String(), Code: cmd.ProcessState.ExitCode()}
}

// Run starts a command on the host that is killed when the test ends.
func (h *Host) Run(tb testing.TB, name string, args ...string) {
	tb.Helper()
	cmd := h.Command(name, args...)
	cmd.Stderr = os.Stderr
	must.OK(tb, start(cmd))
	tb.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed
	})
}

// starter starts every process from one thread that never ends: to Pdeathsig a thread's end is the parent's death.
var starter = sync.OnceValue(func() chan<- func() {
	orders := make(chan func())
	go func() {
		runtime.LockOSThread()
		for order := range orders {
			order()
		}
	}()
	return orders
})

// start starts a command that dies with the test.
func start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error, 1)
	starter() <- func() { done <- cmd.Start() }
	if err := <-done; err != nil {
		return fmt.Errorf("%s: %w", cmd.Path, err)
	}
	return nil
}
