package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// order is what an operator has ordered.
type order struct {
	do     string
	cloned atomic.Bool
	done   chan error // capacity 1
}

// clones reports whether the data is still to be replaced.
func (o *order) clones() bool { return o != nil && o.do == DoReclone && !o.cloned.Load() }

// orders has the newest order until it is done.
type orders struct {
	mu  sync.Mutex
	now *order // nil: there is none
}

func (o *orders) current() *order {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

func (o *orders) put(now *order) {
	o.answer(errors.New("another order has replaced it"))
	o.mu.Lock()
	o.now = now
	o.mu.Unlock()
}

// answer tells whoever has given the order what came of it.
func (o *orders) answer(err error) { o.answerTo(o.current(), err) }

// answerTo is answer, for this order only.
func (o *orders) answerTo(which *order, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if which != nil && o.now == which {
		o.now.done <- err
		o.now = nil
	}
}

// Obey does what an operator has ordered of the follower, and returns once that is done: it is restarted and ready, has lived on after its
// reload signal, or has been cloned from the primary with this token, and has its data. A clone that has begun goes on after ctx.
func (c *Copy) Obey(ctx context.Context, do string, token int64) error {
	o := &order{do: do, done: make(chan error, 1)}
	c.mu.Lock()
	err := c.refuses(do, token)
	if err == nil {
		c.orders.put(o)
		if kept, _ := c.data.known(); do == DoReclone && kept.Torn == byPrepare { // it may run, and hang
			c.turns()
		}
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	defer c.orders.answerTo(o, nil)
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
	switch lent := c.lending.now(); {
	case lent.held:
		return errPromoted
	case lent.closed:
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
	now, conf := o.c.orders.current(), o.c.config()
	if now == o.newest || now == nil {
		return
	}
	o.newest, o.checked, o.reloaded = now, nil, nil
	switch {
	case now.do == DoReload:
		o.checked = o.run.CheckReload(ctx, conf.ReloadCheck)
	case now.do == DoRestart || now.clones():
		o.run.End(errOrdered)
	}
}

// started notes that the program is ready: it was started since the order.
func (o *obeying) started() {
	o.ready = nil
	if o.newest != nil && o.newest.do != DoReclone {
		o.c.orders.answerTo(o.newest, nil)
	}
}

// reload tells the program to reload, unless its check has failed.
func (o *obeying) reload(failed error) {
	o.checked = nil
	if failed != nil {
		o.c.orders.answerTo(o.newest, fmt.Errorf("it was not told to reload, because its reload_check failed: %w", failed))
		return
	}
	o.run.Reload(syscall.Signal(o.c.config().ReloadSignal))
	o.reloaded = time.After(unit.ReloadPatience)
}

// ended notes why the run has ended.
func (o *obeying) ended(why error) {
	switch {
	case o.reloaded != nil:
		o.c.orders.answerTo(o.newest, unit.FailedReload(why, "its program", syscall.Signal(o.c.config().ReloadSignal)))
	case o.ready != nil && o.newest != nil && !orderly(why): // it was to be started
		o.c.orders.answerTo(o.newest, why)
	}
}
