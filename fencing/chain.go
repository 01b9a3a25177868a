package fencing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/wait"
)

// Liveness is what this machine knows about a target by itself.
type Liveness int

// What it may know.
const (
	Unknown Liveness = iota // this machine knows nothing: the target is on another one, or out of sight
	Dead                    // proved
	Alive                   // seen; no delay proves it dead
)

// Method makes sure that a target is dead. It returns nil only if the target's child is dead, or cut off from all that it
// could harm, and must return soon after ctx ends.
type Method interface {
	Name() string
	Fence(ctx context.Context, t Target) error
}

// ErrAlive is a method's error for a child that it has seen and could not end. No delay proves that one dead.
var ErrAlive = errors.New("the program is alive")

// Step is a method with its time limit.
type Step struct {
	Method  Method
	Timeout time.Duration
}

// OnFailure says what follows when methods are configured and all have failed.
type OnFailure string

// The values of OnFailure.
const (
	Refuse OnFailure = "refuse"
	Grace  OnFailure = "grace"
)

// Proofs of an Outcome besides a method's and Local's.
const (
	ByGrace     = "grace"
	ByConfirmed = "confirmed"
)

// ErrRefused says that nothing proves the target dead: its child may be running, so ours must not start.
var ErrRefused = errors.New("fencing refused")

// Chain is everything that may prove a target dead, in the order of the attempts. Config checks that timeouts are positive, and that the
// grace delay is not negative.
type Chain struct {
	// Local returns what this machine knows, without waiting for another: by names the proof, as in "own tree" or "another boot".
	// The chain calls it again after the grace delay if it saw the child alive. Like a method, it ends soon after ctx. Optional.
	Local func(ctx context.Context, t Target) (verdict Liveness, by string, err error)

	Steps     []Step
	OnFailure OnFailure // Refuse unless set
	Grace     time.Duration
	NoDelay   bool // no delay proves anything: without another proof, refuse
	Logger    hclog.Logger
}

// errConfirmed ends all attempts and waiting.
var errConfirmed = errors.New("confirmed")

// Fence returns nil once t is known to be dead. claimed is when the lock was claimed: the grace delay counts from there.
// confirmed, when not nil, is closed to say that t is dead: by an operator, or because its breadcrumb vanished; that ends
// any waiting with success. ErrRefused says that all attempts failed; if ctx ends first, Fence returns its cause.
func (c Chain) Fence(ctx context.Context, t Target, claimed time.Time, confirmed <-chan struct{}) (Outcome, error) {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	stop := cancelWhen(ctx, confirmed, cancel)
	defer stop()

	began := time.Now()
	a := &attempts{chain: c, target: t}
	by, err := a.fence(ctx, claimed)
	switch {
	case err == nil:
	case outer.Err() != nil:
		err = fmt.Errorf("fence %s: %w", t.Node, context.Cause(outer))
	case errors.Is(context.Cause(ctx), errConfirmed):
		by, err = ByConfirmed, nil
	}
	return a.told(by, time.Since(began), err)
}

// cancelWhen cancels ctx when confirmed is closed, at once if it is closed already. stop ends the watching, and ctx.
func cancelWhen(ctx context.Context, confirmed <-chan struct{}, cancel context.CancelCauseFunc) (stop func()) {
	select {
	case <-confirmed:
		cancel(errConfirmed)
		return func() {}
	default:
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-confirmed:
			cancel(errConfirmed)
		case <-ctx.Done():
		}
	}()
	return func() { cancel(nil); <-watched }
}

// attempts is one run of a chain.
type attempts struct {
	chain  Chain
	target Target
	tried  []Attempt
}

// fence tries all steps in order. An error that is not ErrRefused means that ctx ended.
func (a *attempts) fence(ctx context.Context, claimed time.Time) (by string, err error) {
	// P5: a proof on this machine needs no method and no delay.
	verdict, by := a.local(ctx)
	if verdict == Dead {
		return by, nil
	}
	var living []Step // the steps that have seen it alive
	for _, step := range a.chain.Steps {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		err := a.try(ctx, step)
		if err == nil {
			return step.Method.Name(), nil
		}
		if errors.Is(err, ErrAlive) {
			living = append(living, step)
		}
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if a.chain.NoDelay || len(a.chain.Steps) > 0 && a.chain.OnFailure != Grace {
		return "", &refusal{target: a.target, tried: a.tried}
	}
	if err := a.wait(ctx, claimed); err != nil {
		return "", err
	}
	if verdict == Unknown && len(living) == 0 {
		return ByGrace, nil
	}
	// P5: a delay does not prove the death of a child that was seen alive.
	if verdict != Unknown {
		if verdict, by = a.local(ctx); verdict == Dead {
			return by, nil
		}
	}
	for _, step := range living {
		if a.try(ctx, step) == nil {
			return step.Method.Name(), nil
		}
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return "", &refusal{target: a.target, tried: a.tried}
}

// local asks this machine. After an error the verdict is Unknown.
func (a *attempts) local(ctx context.Context) (verdict Liveness, by string) {
	if a.chain.Local == nil {
		return Unknown, ""
	}
	began := time.Now()
	verdict, by, err := a.chain.Local(ctx, a.target)
	switch {
	case err == nil && verdict == Unknown: // there was no attempt
		return Unknown, ""
	case err == nil && verdict == Alive:
		err = errAlive
	case err != nil && verdict == Dead:
		verdict = Unknown // P2: an unproved death is none
	}
	a.note(Attempt{Method: local, Err: err, Took: time.Since(began)})
	return verdict, by
}

var errAlive = errors.New("the program is alive on this machine")

// try runs one method within its timeout.
func (a *attempts) try(ctx context.Context, step Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, step.Timeout, fmt.Errorf("no answer within %v", step.Timeout))
	defer cancel()
	began := time.Now()
	err := step.Method.Fence(ctx, a.target)
	a.note(Attempt{Method: step.Method.Name(), Err: err, Took: time.Since(began)})
	return err
}

// wait waits for the rest of the grace delay.
func (a *attempts) wait(ctx context.Context, claimed time.Time) error {
	// The claim lies in the past, so the whole delay from now on is always enough, whatever a wall clock says.
	left := min(time.Until(claimed.Add(a.chain.Grace)), a.chain.Grace)
	if claimed.IsZero() {
		left = a.chain.Grace
	}
	if left <= 0 {
		return nil
	}
	a.chain.Logger.Info("waiting for the grace delay", a.pairs("left", left.Round(time.Millisecond), "grace_delay", a.chain.Grace)...)
	if !wait.For(ctx, left) {
		return context.Cause(ctx)
	}
	return nil
}

func (a *attempts) note(attempt Attempt) {
	a.tried = append(a.tried, attempt)
	if attempt.Err != nil {
		a.chain.Logger.Warn("fencing attempt failed",
			a.pairs("method", attempt.Method, "took", attempt.Took.Round(time.Millisecond), "error", attempt.Err)...)
		return
	}
	a.chain.Logger.Info("fencing attempt succeeded", a.pairs("method", attempt.Method, "took", attempt.Took.Round(time.Millisecond))...)
}

// told logs and returns the result.
func (a *attempts) told(by string, took time.Duration, err error) (Outcome, error) {
	if err != nil {
		return Outcome{Took: took, Attempts: a.tried}, err
	}
	words := "the previous node's program is dead"
	if by == ByGrace { // nothing has proved it
		words = "the previous node's program counts as dead after this delay"
	}
	a.chain.Logger.Info(words, a.pairs("by", by, "took", took.Round(time.Millisecond))...)
	return Outcome{By: by, Took: took, Attempts: a.tried}, nil
}

func (a *attempts) pairs(more ...any) []any {
	return append([]any{"service", a.target.Service, "node", a.target.Node, "target_token", a.target.Token}, more...)
}

// refusal is an ErrRefused that names each attempt.
type refusal struct {
	target Target
	tried  []Attempt
}

func (r *refusal) Error() string {
	why := []string{"no method is configured"}
	for i, attempt := range r.tried {
		why = append(why[:i], fmt.Sprintf("%s: %v", attempt.Method, attempt.Err))
	}
	return fmt.Sprintf("%v: nothing proves that the program on %s is dead (%s)", ErrRefused, r.target.Node, strings.Join(why, "; "))
}

func (r *refusal) Unwrap() []error {
	errs := []error{ErrRefused}
	for _, attempt := range r.tried {
		errs = append(errs, attempt.Err)
	}
	return errs
}
