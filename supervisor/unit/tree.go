package unit

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
)

// Tree is a program and all processes that it forks, as child.Tree describes it.
type Tree interface {
	ID() (json.RawMessage, error)
	// Arm makes the watchdog reset the machine unless the tree is proved dead soon after its lease's end.
	Arm(ctx context.Context, w child.Watchdog) error
	Start(ctx context.Context, spec child.Spec) (Process, error)
	// Process finds a program of a tree that was handed over.
	Process(pid int) (Process, bool)
	Owns(pid int) bool
	Kill(ctx context.Context) error
	End(ctx context.Context) error
}

// Process is a started program, as child.Process describes it.
type Process interface {
	Pid() int
	Done() <-chan struct{}
	Wait(ctx context.Context) (child.ExitStatus, error)
	Signal(sig syscall.Signal) error
	AskRest(sig syscall.Signal) (left int)
	Astray() (cgroup string)
	Kill(ctx context.Context) error
}

// ExitOf waits for a process's end, and returns its exit status.
func ExitOf(p Process) child.ExitStatus {
	<-p.Done()
	status, _ := p.Wait(context.Background())
	return status
}

// Describe puts a status into words.
func Describe(s child.ExitStatus) string {
	switch {
	case s.Unknown:
		return "unknown"
	case s.Signal != 0:
		return "killed by " + unix.SignalName(s.Signal)
	}
	return "exit code " + strconv.Itoa(s.Code)
}

// endedProcess is a process that has ended.
type endedProcess struct{ status child.ExitStatus }

func (endedProcess) Pid() int { return 0 }

func (endedProcess) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (p endedProcess) Wait(context.Context) (child.ExitStatus, error) { return p.status, nil }

func (endedProcess) Signal(syscall.Signal) error { return os.ErrProcessDone }

func (endedProcess) AskRest(syscall.Signal) int { return 0 }

func (endedProcess) Astray() string { return "" }

func (endedProcess) Kill(context.Context) error { return nil }
