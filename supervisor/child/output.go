package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Running is a process as Output needs it.
type Running interface {
	Wait(ctx context.Context) (ExitStatus, error)
	Kill(ctx context.Context) error
}

// Result is how a command ended, and the last of what it said.
type Result struct {
	Status ExitStatus
	Output []byte
}

const (
	outputKept   = 16 << 10
	outputDeath  = 5 * time.Second // for the proof that nothing of the command is left
	outputParted = time.Second     // for the rest of what it said
)

// Output starts a command, whose Stdout and Stderr it takes, waits for it, and then kills exactly what this start spawned:
// neither a hang nor a fork is left behind. The error is why it did not start, the cause of ctx (it was killed then), or
// ErrUnproved; an exit code is none.
func Output[P Running](ctx context.Context, start func(context.Context, Spec) (P, error), spec Spec) (Result, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return Result{}, fmt.Errorf("pipe for the output: %w", err)
	}
	spec.Stdout, spec.Stderr = w, w
	p, err := start(ctx, spec)
	if err := errors.Join(err, w.Close()); err != nil {
		_ = r.Close()
		return Result{}, err
	}
	said := make(chan []byte, 1)
	go func() { said <- lastOf(r) }() // waited for below: its pipe is closed
	status, waited := p.Wait(ctx)
	death, cancel := context.WithTimeout(context.WithoutCancel(ctx), outputDeath)
	defer cancel()
	killed := p.Kill(death)
	if waited != nil && killed == nil {
		status, _ = p.Wait(death)
	}
	_ = r.SetReadDeadline(time.Now().Add(outputParted)) // it is at its end, unless something of it lives or another one has it
	out := <-said
	return Result{status, out}, errors.Join(waited, killed)
}

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
