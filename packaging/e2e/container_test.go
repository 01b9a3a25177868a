package e2e

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"understudy/supervisor/testbed/kit"
)

// container is one that runs, or has ended.
type container struct {
	*kit.Host
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

func (c *container) said() string {
	text, _ := os.ReadFile(c.log)
	return string(text)
}

// first is the container's first process as it is seen from here.
func (c *container) first() int {
	select {
	case <-c.ended:
		return 0 // its number may be another's by now
	default:
	}
	for _, pid := range kit.Children(c.cmd.Process.Pid) {
		return pid
	}
	return 0
}

func (c *container) signal(sig syscall.Signal) {
	if pid := c.first(); pid > 0 {
		kit.Signal(sig, pid)
	}
}

// code waits for the end of the container.
func (c *container) code(t *testing.T) int {
	t.Helper()
	kit.Until(t, kit.Soon, "the container has ended", func() bool {
		select {
		case <-c.ended:
			return true
		default:
			return false
		}
	})
	return c.cmd.ProcessState.ExitCode()
}

// unburied says whether the container's first process has children that are dead and not reaped.
func (c *container) unburied() bool {
	for _, pid := range kit.Children(c.first()) {
		if !kit.Alive(pid) {
			return true
		}
	}
	return false
}

// supervisorOf is the child of the container's first process that bears its name; others are what the program forked.
func supervisorOf(t *testing.T, c *container) int {
	t.Helper()
	for _, pid := range kit.Children(c.first()) {
		if strings.Contains(kit.CommandLine(pid), "/understudy run ") {
			return pid
		}
	}
	t.Fatal("there is no supervisor")
	return 0
}
