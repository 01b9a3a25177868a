package supervisor

import (
	"cmp"
	"context"
	"errors"
	"syscall"
	"time"

	"understudy/election"
	"understudy/supervisor/unit"
)

var (
	// errSwitch says that an operator wants another node to be active.
	errSwitch = errors.New("an operator wants another node to be active")
	// errRestart says that an operator wants a new start.
	errRestart = errors.New("an operator wants it started anew")
)

// order is what an operator wants of an activation.
type order uint8

const (
	orderNone order = iota
	orderSwitchover
	orderRestart
	orderReload
)

// ordered tells what operators want of this very activation that is not under way yet, and takes it for under way.
func (v *service) ordered() order {
	v.news.mu.Lock()
	c := v.news.wishes.Control
	v.news.mu.Unlock()
	if o := c.Switchover; o != nil && o.Token == v.token && !c.Paused {
		if o.ID != v.followed {
			v.followed = o.ID
			v.log.Info("an operator orders a switchover", "service", v.name, "token", v.token, "to", cmp.Or(o.To, "whoever is first"), "by", o.By)
		}
		return orderSwitchover
	}
	if o := c.Restart; o != nil && o.Token == v.token && o.ID != v.restarted {
		v.restarted = o.ID
		v.tries.reset()
		v.log.Info("an operator orders a restart", "service", v.name, "token", v.token, "by", o.By)
		return orderRestart
	}
	if o := c.Reload; o != nil && o.Token == v.token && o.ID != v.reloaded {
		v.reloaded = o.ID
		v.log.Info("an operator orders a reload", "service", v.name, "token", v.token, "by", o.By)
		return orderReload
	}
	return orderNone
}

// obey carries out what operators order while the programs run.
func (v *service) obey(ctx context.Context, t turn, run *unit.Run, ready bool) {
	switch v.ordered() {
	case orderSwitchover:
		run.End(errSwitch)
	case orderRestart:
		run.End(errRestart)
	case orderReload:
		run.Reload(syscall.Signal(v.ReloadSignal))
		v.confirm(ctx, t)
	default:
		v.news.mu.Lock()
		c := v.news.wishes.Control
		v.news.mu.Unlock()
		if ready && late(c, v.token) {
			v.confirm(ctx, t)
		}
	}
}

// late tells whether there is an order for an activation before this one: one that was written as this one began, and that
// nobody else would take back.
func late(c election.Control, token int64) bool {
	before := func(o *election.Errand) bool { return o != nil && o.Token < token }
	return before(c.Restart) || before(c.Reload) || c.Switchover != nil && before(&c.Switchover.Errand)
}

// confirm takes orders back that this activation has carried out, or that were for a former one: whoever gave them waits
// for that.
func (v *service) confirm(ctx context.Context, t turn) {
	v.news.mu.Lock()
	c := v.news.wishes.Control
	v.news.mu.Unlock()
	if c.Switchover == nil && c.Restart == nil && c.Reload == nil {
		return
	}
	token, restarted, reloaded := v.token, v.restarted, v.reloaded
	done := func(o *election.Errand, id string) bool { return o != nil && (o.Token < token || o.ID == id) }
	v.confirming.Go(func() {
		pause(ctx, settling) // nothing waits for it that is in a hurry
		err := t.cand.AmendControl(ctx, func(c *election.Control) bool {
			changed := false
			if c.Switchover != nil && c.Switchover.Token < token {
				c.Switchover, changed = nil, true
			}
			if done(c.Restart, restarted) {
				c.Restart, changed = nil, true
			}
			if done(c.Reload, reloaded) {
				c.Reload, changed = nil, true
			}
			return changed
		})
		if err != nil && ctx.Err() == nil {
			v.log.Warn("an operator's order could not be taken back", "service", v.name, "error", err)
		}
	})
}

// How long a node leaves a free lock to one that is preferred to it.
const (
	deference = 500 * time.Millisecond
	parting   = 2 * time.Second // to any other, by the node that an operator wants replaced
)

// defers tells how long this node leaves a free lock to others.
func (v *service) defers(w election.Wishes) time.Duration {
	me := v.node.Node
	switch s := w.Control.Switchover; {
	case s != nil && s.To == me:
		return 0
	case s != nil && s.From == me:
		return parting
	case s != nil && s.To != "":
		return deference
	}
	if w.Rival(me, v.preference()) != "" {
		return deference
	}
	return 0
}
