package demo

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"understudy/supervisor/keyfile"
	"understudy/supervisor/wait"
)

// condition is what we have done to a node.
type condition uint8

const (
	up condition = iota
	stopped
	killed
	frozen
	cutOff
)

var conditionNames = [...]string{"up", "stopped", "killed", "frozen", "cut off"}

func (c condition) String() string { return conditionNames[c] }

// node is one supervisor, on a host of its own as far as it can tell.
type node struct {
	name string
	log  string // path
	gate *gate

	process atomic.Pointer[process] // the newest; nil: none was started

	mu     sync.Mutex // guards states
	states []state
}

// process is one of a node's supervisors.
type process struct {
	*os.Process
	ended chan struct{}
}

// state is a condition, from a time on.
type state struct {
	condition
	since time.Duration
}

// start runs the supervisor. The thread that starts it must live for as long as we do: the supervisor dies with it.
func (n *node) start(argv []string) error {
	log, err := os.OpenFile(n.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("log of %s: %w", n.name, err)
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "UNDERSTUDY_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, keyfile.RunVariable+"="+filepath.Dir(n.log)) // beside those of this machine's own supervisors, and of another demo
	// A group of its own: Ctrl-C is ours to pass on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.name, err)
	}
	ended := make(chan struct{})
	go func() { // ends with the process, which end waits for
		_ = cmd.Wait()
		close(ended)
	}()
	n.process.Store(&process{cmd.Process, ended})
	n.is(up)
	return nil
}

// is notes a condition.
func (n *node) is(c condition) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.states = append(n.states, state{c, now()})
}

// was is the condition at a time.
func (n *node) was(t time.Duration) condition {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := stopped
	for _, s := range n.states {
		if s.since <= t {
			c = s.condition
		}
	}
	return c
}

func (n *node) pid() int {
	if p := n.process.Load(); p != nil {
		return p.Pid
	}
	return 0
}

// gone is closed when the supervisor has ended; nil: none was started.
func (n *node) gone() <-chan struct{} {
	if p := n.process.Load(); p != nil {
		return p.ended
	}
	return nil
}

func (n *node) running() bool {
	gone := n.gone()
	return gone != nil && !wait.Closed(gone)
}

// signal reaches this very process: Go's handle knows whether it has been waited for.
func (n *node) signal(sig syscall.Signal) error {
	if err := n.process.Load().Signal(sig); err != nil {
		return fmt.Errorf("send %v to %s: %w", sig, n.name, err)
	}
	return nil
}

// lastWords are the last lines of the log.
func (n *node) lastWords(lines int) []string {
	data, err := os.ReadFile(n.log)
	if err != nil {
		return nil
	}
	var all []string
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		all = append(all, s.Text())
	}
	return all[max(len(all)-lines, 0):]
}
