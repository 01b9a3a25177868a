package unit

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
)

// Ask runs a command about a program, as the program's user and in its tree, and returns what it printed and its exit code. An error
// means that it did not end by itself in time.
func (u *Unit) Ask(
	ctx context.Context, tree host.Tree, about config.Process, command, env []string, token int64, limit time.Duration,
) (said []byte, code int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("killed: it took longer than %v", limit))
	defer cancel()
	about.Command, about.Log, about.Ready = command, config.LogFile{}, config.Ready{}
	spec, _, err := u.spec(ctx, tree, about, token)
	if err != nil {
		return nil, 0, err
	}
	spec.Env = append(spec.Env, env...)
	result, err := child.Output(ctx, &u.reach, tree.Start, spec)
	return bytes.TrimSpace(result.Output), result.Status.Code, err
}

// Withdraw stops what was started since the copy was promoted, and undoes its effects. It reports whether nothing is left of that: then the
// run is that of the copy's program alone. Wait has returned.
func (r *Run) Withdraw(ctx context.Context, now config.Service, cut Cut) bool {
	was, s := r.follower, stopping{Run: r, cut: cut}
	if was.Parts == 0 || !s.backTo(context.WithoutCancel(ctx), now, was.Parts) || s.keeps || r.u.HasPendingEffects() {
		return false
	}
	for _, socket := range r.sockets[was.Sockets:] {
		r.hearers.Go(func() { _ = socket.Close() })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts, r.sockets = r.parts[:was.Parts], r.sockets[:was.Sockets]
	return true
}

// promote makes the program of a run the primary, once it is ready.
func (r *Run) promote(ctx context.Context) error {
	if r.cfg.Promote == nil {
		return nil
	}
	if err := r.cfg.Promote(ctx, r.First()); err != nil {
		return fmt.Errorf("%w: %w", ErrPromote, err)
	}
	r.attend(ctx)
	return nil
}

// attend looks whether a promoted program stays the primary.
func (r *Run) attend(ctx context.Context) {
	if r.cfg.Attend != nil {
		r.watchers.Go(func() {
			if err := r.cfg.Attend(ctx); err != nil && ctx.Err() == nil {
				r.end(err)
			}
		})
	}
}
