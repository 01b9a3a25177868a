package replica

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// What an operator may order of a follower.
const (
	DoRestart = "restart"
	DoReload  = "reload"
	DoReclone = "reclone"
)

var (
	errOrdered  = errors.New("an operator has ordered it")
	errPromoted = errors.New("its copy is the primary, is about to be, or was")
	errTurned   = errors.New("another copy is the primary since, or none: see `understudy status`")
)

// order is what an operator has ordered. Copy.mu guards it.
type order struct {
	do     string
	cloned bool
	done   chan error // capacity 1
}

// Obey does what an operator has ordered of the follower, and returns once that is done: it is restarted and ready, has lived on after its
// reload signal, or has been cloned from the primary with this token, and has its data. A clone that has begun goes on after ctx.
func (c *Copy) Obey(ctx context.Context, do string, token int64) error {
	o := &order{do: do, done: make(chan error, 1)}
	c.mu.Lock()
	err := c.refuses(do, token)
	if err == nil {
		c.answer(errors.New("another order has replaced it"))
		c.order = o
		if do == DoReclone && c.state.Torn == byPrepare { // it may run, and hang
			c.turns()
		}
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.order == o {
			c.order = nil
		}
	}()
	wait.Poke(c.poke)
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refuses tells why an order cannot be followed. The caller holds mu.
func (c *Copy) refuses(do string, token int64) error {
	switch {
	case c.held:
		return errPromoted
	case c.closed:
		return errClosed
	case do == DoRestart, do == DoReload:
		return nil
	case do != DoReclone:
		return fmt.Errorf("this version does not know the order %q", do)
	case len(c.conf.Replicated.Reclone) == 0:
		return errors.New("there is no replicated.reclone in the config of this node")
	case c.active.Node == "" || c.active.Node == c.cfg.Node || c.active.Token != token:
		return errTurned
	}
	return nil
}

// answer tells whoever has given the order what came of it. The caller holds mu.
func (c *Copy) answer(err error) {
	if c.order != nil {
		c.order.done <- err
		c.order = nil
	}
}

// answers is answer, for this order only.
func (c *Copy) answers(o *order, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o != nil && c.order == o {
		c.answer(err)
	}
}

// ordered is the order that is to be followed; nil: there is none.
func (c *Copy) ordered() *order {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order
}

// clones reports whether an operator wants the data replaced. The caller holds mu.
func (c *Copy) clones() bool { return c.order != nil && c.order.do == DoReclone && !c.order.cloned }

// obeying follows orders while a program runs.
type obeying struct {
	c        *Copy
	run      *unit.Run
	ready    <-chan struct{}  // of a program that was started for an order, or after it; nil: it is ready
	newest   *order           // that was seen
	checked  <-chan error     // whether the program may be told to reload
	reloaded <-chan time.Time // it has lived on
}

// look begins to follow an order that was not there when the program was started.
func (o *obeying) look(ctx context.Context) {
	c := o.c
	c.mu.Lock()
	now, conf := c.order, c.conf
	clones := c.clones()
	c.mu.Unlock()
	if now == o.newest || now == nil {
		return
	}
	o.newest, o.checked, o.reloaded = now, nil, nil
	switch {
	case now.do == DoReload:
		o.checked = o.run.CheckReload(ctx, conf.ReloadCheck)
	case now.do == DoRestart || clones:
		o.run.End(errOrdered)
	}
}

// started notes that the program is ready: it was started since the order.
func (o *obeying) started() {
	o.ready = nil
	if o.newest != nil && o.newest.do != DoReclone {
		o.c.answers(o.newest, nil)
	}
}

// reload tells the program to reload, unless its check has failed.
func (o *obeying) reload(failed error) {
	o.checked = nil
	if failed != nil {
		o.c.answers(o.newest, fmt.Errorf("it was not told to reload, because its reload_check failed: %w", failed))
		return
	}
	o.c.mu.Lock()
	sig := syscall.Signal(o.c.conf.ReloadSignal)
	o.c.mu.Unlock()
	o.run.Reload(sig)
	o.reloaded = time.After(unit.ReloadPatience)
}

// ended notes why the run has ended.
func (o *obeying) ended(why error) {
	o.c.mu.Lock()
	sig := syscall.Signal(o.c.conf.ReloadSignal)
	o.c.mu.Unlock()
	switch {
	case o.reloaded != nil:
		o.c.answers(o.newest, unit.FailedReload(why, "its program", sig))
	case o.ready != nil && o.newest != nil && !orderly(why): // it was to be started
		o.c.answers(o.newest, why)
	}
}
