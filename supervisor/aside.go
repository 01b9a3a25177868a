package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"understudy/supervisor/child"
)

// inside runs a command in a term's own tree: it dies with the child at the latest.
func (v *service) inside(ctx context.Context, tree Tree, what string, spec child.Spec, limit time.Duration) error {
	ctx, calm := v.hurried(ctx)
	defer calm()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("killed: it took longer than %v", limit))
	defer cancel()
	spec.Env = slices.Concat(child.Environ(), spec.Env)
	result, err := child.Output(ctx, tree.Start, spec)
	return v.told(what, result, err)
}

// asides number the leases of commands that run outside any session. Those of sessions count from 1.
var asides atomic.Uint64

const firstAside = 1 << 32

// outside runs a command that is no part of a child, under a lease of its own: the guardians end it, and all that it forked,
// when it takes too long or when this supervisor dies.
func (v *service) outside(ctx context.Context, what string, spec child.Spec, limit time.Duration) (err error) {
	epoch := firstAside + asides.Add(1)
	ctx, calm := v.hurried(ctx)
	defer calm()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("killed: it took longer than %v", limit))
	defer cancel()
	if err := v.guard.Begin(epoch, nil); err != nil {
		return fmt.Errorf("tell the guardians: %w", err)
	}
	defer func() {
		if fin := v.guard.Finish(epoch); fin != nil {
			err = errors.Join(err, fmt.Errorf("tell the guardians: %w", fin))
		}
	}()
	if err := v.guard.Extend(epoch, v.machine.Now()+limit+asideSlack); err != nil {
		return fmt.Errorf("tell the guardians: %w", err)
	}
	tree, err := v.guard.NewTree(ctx, epoch, v.name+"/"+what, nil)
	if err != nil {
		return fmt.Errorf("make a container: %w", err)
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofPatience)
		defer cancel()
		if end := tree.End(bounded); end != nil {
			err = errors.Join(err, end)
		}
	}()
	spec.Env = slices.Concat(child.Environ(), spec.Env)
	result, err := child.Output(ctx, tree.Start, spec)
	return v.told(what, result, err)
}

// asideSlack is what a command's killing by us may take, before the guardians do it.
const asideSlack = 2 * time.Second

// told logs what a command said, and makes an error of how it ended.
func (v *service) told(what string, result child.Result, err error) error {
	said := strings.TrimSpace(strings.ToValidUTF8(string(result.Output), "?"))
	if said != "" {
		v.log.Info("output of "+what, "service", v.name, "output", said)
	}
	switch {
	case err != nil:
		return err
	case result.Status.Code != 0 && said != "":
		return fmt.Errorf("%s: %s", describe(result.Status), said[strings.LastIndexByte(said, '\n')+1:])
	case result.Status.Code != 0:
		return errors.New(describe(result.Status))
	}
	return nil
}

// hook runs a command that somebody wants to be run now. What becomes of it changes nothing.
func (v *service) hook(ctx context.Context, what string, h Hook, facts ...string) {
	if len(h.Command) == 0 {
		return
	}
	began := time.Now()
	v.log.Info("running a hook", "service", v.name, "hook", what, "timeout", h.Timeout)
	err := v.outside(ctx, what, child.Spec{Argv: h.Command, Env: facts}, h.Timeout)
	if err != nil {
		v.log.Error("hook failed", "service", v.name, "hook", what, "error", err)
		return
	}
	v.log.Info("hook done", "service", v.name, "hook", what, "took", time.Since(began).Round(time.Millisecond))
}

// beside runs a hook beside whatever goes on; only the supervisor's own end waits for it.
func (v *service) beside(ctx context.Context, what string, h Hook, facts []string) {
	v.hooks.Go(func() { v.hook(ctx, what, h, facts...) })
}

// hurried is a context that ends also when an operator has asked twice for the end.
func (v *service) hurried(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-v.hurry:
			cancel(errors.New("killed: asked again to stop"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// check keeps the precheck's verdict current for as long as this node stands for election.
func (v *service) check(ctx context.Context) {
	for ctx.Err() == nil {
		v.news.mu.Lock()
		conf, standing := v.precheck, v.news.standing
		v.news.mu.Unlock()
		if len(conf.Exec) > 0 && standing {
			unfit := ""
			if err := v.outside(ctx, "precheck", child.Spec{Argv: conf.Exec, Env: v.facts(0)}, conf.Timeout); err != nil {
				unfit = err.Error()
			}
			if ctx.Err() != nil {
				return
			}
			v.news.mu.Lock()
			same := v.news.tested && v.news.unfit == unfit
			v.news.mu.Unlock()
			if !same {
				v.news.tell(func() { v.news.tested, v.news.unfit = true, unfit })
			}
		}
		next := time.NewTimer(max(conf.Interval, time.Second))
		select {
		case <-next.C:
		case <-v.news.stood:
		case <-ctx.Done():
		}
		next.Stop()
	}
}
