package fencing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exec is the method that runs a command; exit code 0 says that the target is dead.
//
// The command's environment says which node to fence: UNDERSTUDY_SERVICE, UNDERSTUDY_TARGET_NODE,
// UNDERSTUDY_TARGET_HOST, UNDERSTUDY_TARGET_MACHINE, UNDERSTUDY_TARGET_BOOT, UNDERSTUDY_TARGET_TOKEN,
// UNDERSTUDY_TARGET_SESSION, UNDERSTUDY_TARGET_GUARDIAN_PID and UNDERSTUDY_TARGET_ADDRESS, each empty if unknown;
// UNDERSTUDY_TARGET_PLUG, the node's word in Plugs, or without plugs the node's name; and the fencing node: UNDERSTUDY_NODE,
// UNDERSTUDY_TOKEN. The rest is the supervisor's own. Its stdin is /dev/null. It leads a process group, which is killed as a whole when the
// context ends.
type Exec struct {
	Command []string
	Plugs   Plugs
}

// outputDelay is how long processes that a command left behind may hold its output open.
const outputDelay = 500 * time.Millisecond

// Name is "exec".
func (Exec) Name() string { return "exec" }

// Fence runs the command. The error ends with the last of its output.
func (e Exec) Fence(ctx context.Context, t Target) error {
	facts, err := e.Plugs.facts(t)
	if err != nil {
		return err
	}
	env := append(environment(t), "UNDERSTUDY_TARGET_PLUG="+facts.words["plug"])
	output, err := program{argv: e.Command, env: env}.run(ctx)
	if err != nil {
		return fmt.Errorf("%w%s", err, output.quoted())
	}
	return nil
}

// program is a command of a method.
type program struct {
	argv  []string
	env   []string // added to the supervisor's own
	stdin string
}

// run runs it to its end, or kills all its processes when ctx ends. nil: exit code 0; an exec.ExitError has another one.
func (p program) run(ctx context.Context) (*tail, error) {
	var output tail
	if len(p.argv) == 0 {
		return &output, errors.New("no command")
	}
	// Pdeathsig follows the thread that forks, so this one has to live as long as the command.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.Env = append(os.Environ(), p.env...)
	if p.stdin != "" {
		cmd.Stdin = strings.NewReader(p.stdin)
	}
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = outputDelay
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if ctx.Err() != nil {
		return &output, fmt.Errorf("not started: %w", context.Cause(ctx))
	}
	if err := cmd.Start(); err != nil {
		return &output, fmt.Errorf("start: %w", err)
	}
	err := cmd.Wait()
	switch {
	case err != nil && ctx.Err() != nil:
		return &output, fmt.Errorf("killed: %w", context.Cause(ctx))
	case errors.Is(err, exec.ErrWaitDelay): // exit code 0, although a process still holds its output
		return &output, nil
	}
	return &output, err
}

func environment(t Target) []string {
	return []string{
		"UNDERSTUDY_SERVICE=" + t.Service,
		"UNDERSTUDY_TARGET_NODE=" + t.Node,
		"UNDERSTUDY_TARGET_HOST=" + t.Host,
		"UNDERSTUDY_TARGET_MACHINE=" + t.Machine,
		"UNDERSTUDY_TARGET_BOOT=" + t.Boot,
		"UNDERSTUDY_TARGET_TOKEN=" + strconv.FormatInt(t.Token, 10),
		"UNDERSTUDY_TARGET_SESSION=" + t.Session,
		"UNDERSTUDY_TARGET_GUARDIAN_PID=" + strconv.Itoa(t.GuardianPid),
		"UNDERSTUDY_TARGET_ADDRESS=" + t.Address,
		"UNDERSTUDY_NODE=" + t.By.Node,
		"UNDERSTUDY_TOKEN=" + strconv.FormatInt(t.By.Token, 10),
	}
}

// tail keeps the last of what is written to it.
type tail struct {
	text    []byte
	dropped bool
}

// tailSize is how much of a command's output an error carries.
const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text, t.dropped = t.text[over:], true
	}
	return len(p), nil
}

// quoted is the output as an error's ending, in one line; empty if there was none.
func (t *tail) quoted() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.text), "?"))
	switch {
	case text == "":
		return ""
	case t.dropped:
		text = "..." + text
	}
	return ": " + strconv.Quote(text)
}
