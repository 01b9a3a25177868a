package unit

import (
	"context"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child"
	"understudy/supervisor/host"
)

// ExitOf waits for a process's end, and returns its exit status.
func ExitOf(p host.Process) child.ExitStatus {
	<-p.Done()
	status, _ := p.Wait(context.Background())
	return status
}

// Describe puts a status into words.
func Describe(s child.ExitStatus) string {
	how := "exit code " + strconv.Itoa(s.Code)
	switch {
	case s.Unknown:
		return "unknown"
	case s.Signal != 0:
		how = "killed by " + unix.SignalName(s.Signal)
	}
	if s.OutOfMemory {
		how += ", out of memory"
	}
	return how
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

func (endedProcess) AskLeftovers(syscall.Signal) int { return 0 }

func (endedProcess) Kill(context.Context) error { return nil }
