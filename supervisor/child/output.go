package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"understudy/supervisor/wait"
)

// Running is the part of a process that Output needs.
type Running interface {
	Wait(ctx context.Context) (ExitStatus, error)
	Kill(ctx context.Context) error
}

// Result is a command's exit status, and the last of its output.
type Result struct {
	Status ExitStatus
	Output []byte
}

const (
	outputKept      = 16 << 10
	outputDeath     = 5 * time.Second // for the proof that no process of the command is left
	outputAfterExit = time.Second     // for the rest of its output
)

// Output starts a command, reads its output, waits for it, and then kills exactly the processes that this start spawned, so
// that none is left behind. The error is why it did not start, the cause of ctx (then it was killed), or ErrUnproved; an exit
// code is no error. What hangs in the kernel with its output counts with reach.
func Output[P Running](ctx context.Context, reach *wait.Reach, start func(context.Context, Spec) (P, error), spec Spec) (Result, error) {
	if reach.Full() {
		return Result{}, errNoOutput
	}
	r, w, err := os.Pipe()
	if err != nil {
		return Result{}, fmt.Errorf("pipe for the output: %w", err)
	}
	spec.Stderr = w
	if !spec.Aside {
		spec.Stdout = w
	}
	p, err := start(ctx, spec)
	if err := errors.Join(err, w.Close()); err != nil {
		_ = r.Close()
		return Result{}, err
	}
	said := make(chan []byte, 1)
	go func() { said <- lastOf(r) }() // we wait for it below, after closing its pipe
	status, waited := p.Wait(ctx)
	death, cancel := context.WithTimeout(context.WithoutCancel(ctx), outputDeath)
	defer cancel()
	killed := p.Kill(death)
	if waited != nil && killed == nil {
		status, _ = p.Wait(death)
	}
	// It is at its end, unless a process of the command lives or another process has it.
	_ = r.SetReadDeadline(time.Now().Add(outputAfterExit))
	bounded, enough := context.WithTimeout(context.WithoutCancel(ctx), outputAfterExit+time.Second)
	defer enough()
	read := make(chan []byte, 1)
	wait.Stuck.Add(1)
	if reach.Leave(bounded, func() {
		read <- <-said
		wait.Stuck.Add(-1)
	}) != nil {
		return Result{Status: status}, errors.Join(waited, killed, errNoOutput)
	}
	return Result{status, <-read}, errors.Join(waited, killed)
}

// errNoOutput: whoever writes to a pipe can keep its lock in the kernel, as with memory that is a file of a FUSE server, and so its reader.
var errNoOutput = errors.New("its output cannot be read: another process keeps the pipe locked")

// lastOf reads to the end, and closes.
func lastOf(r *os.File) []byte {
	defer r.Close()
	var kept []byte
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		kept = append(kept, buf[:n]...)
		if len(kept) > 2*outputKept || err != nil {
			kept = append([]byte(nil), kept[max(0, len(kept)-outputKept):]...)
		}
		if err != nil {
			return kept
		}
	}
}
