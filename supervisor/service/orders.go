package service

import (
	"cmp"
	"context"
	"time"

	"understudy/election"
	"understudy/supervisor/wait"
)

// carriedOut is the newest orders that were carried out, by their ids.
type carriedOut struct {
	Switchover string `json:"switchover,omitempty"`
	Restart    string `json:"restart,omitempty"`
	Reload     string `json:"reload,omitempty"`
}

// order is what an operator wants of an activation.
type order uint8

const (
	orderNone order = iota
	orderSwitchover
	orderRestart
	orderReload
)

// ordered tells what operators want of this very activation that is not under way yet, and takes it for under way.
func (v *Service) ordered() order {
	c, done := v.inbox.control(), &v.mem.orders
	if o := c.Switchover; o != nil && o.Token == v.mem.token && !c.Paused {
		if o.ID != done.Switchover {
			done.Switchover = o.ID
			v.log.Info("an operator orders a switchover", "service", v.name, "token", v.mem.token, "to", cmp.Or(o.To, "whoever is first"), "by", o.By)
		}
		return orderSwitchover
	}
	if o := c.Restart; o != nil && o.Token == v.mem.token && o.ID != done.Restart {
		done.Restart = o.ID
		v.mem.restarts.reset()
		v.log.Info("an operator orders a restart", "service", v.name, "token", v.mem.token, "by", o.By)
		return orderRestart
	}
	if o := c.Reload; o != nil && o.Token == v.mem.token && o.ID != done.Reload {
		done.Reload = o.ID
		v.log.Info("an operator orders a reload", "service", v.name, "token", v.mem.token, "by", o.By)
		return orderReload
	}
	return orderNone
}

// forced tells whether an operator wants this node to be active whatever it is like. An order that was followed once is not followed
// again, should it still be there.
func (v *Service) forced() bool { return v.forces(v.inbox.control()) }

func (v *Service) forces(c election.Control) bool {
	return c.Forces(v.node.Self.Node) && c.Switchover.ID != v.mem.orders.Switchover
}

// follow notes that an order to take the service is followed.
func (v *Service) follow() {
	if s := v.inbox.control().Switchover; s != nil && s.To == v.node.Self.Node {
		v.mem.orders.Switchover = s.ID
	}
}

// late tells whether there is an order for an activation before this one: one that was written as this one began, and that
// nobody else would take back.
func late(c election.Control, token int64) bool {
	before := func(o *election.Order) bool { return o != nil && o.Token < token }
	return before(c.Restart) || before(c.Reload) || c.Switchover != nil && before(&c.Switchover.Order)
}

// confirm takes orders back that this activation has carried out, or that were for a former one: whoever gave them waits
// for that.
func (t *term) confirm(ctx context.Context) {
	v, cand := t.v, t.cand
	c := v.inbox.control()
	if c.Switchover == nil && c.Restart == nil && c.Reload == nil {
		return
	}
	token, orders := v.mem.token, v.mem.orders
	done := func(o *election.Order, id string) bool { return o != nil && (o.Token < token || o.ID == id) }
	t.beside.Go(func() {
		wait.For(ctx, settling) // nothing waits for it that is in a hurry
		err := cand.Control.Amend(ctx, func(c *election.Control) bool {
			changed := false
			if c.Switchover != nil && c.Switchover.Token < token {
				c.Switchover, changed = nil, true
			}
			if done(c.Restart, orders.Restart) {
				c.Restart, changed = nil, true
			}
			if done(c.Reload, orders.Reload) {
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
	courtesy = 500 * time.Millisecond
	parting  = 2 * time.Second // to any other, by the node that an operator wants replaced
)

// deference tells how long a node leaves a free lock to others.
func deference(me string, preference int, w election.Intents) time.Duration {
	switch s := w.Control.Switchover; {
	case s != nil && s.To == me:
		return 0
	case s != nil && s.From == me:
		return parting
	case s != nil && s.To != "":
		return courtesy
	}
	if w.Rival(me, preference) != "" {
		return courtesy
	}
	return 0
}

// settledIn is how long a preferred node has to be fit before the service is given to it.
const settledIn = 2 * time.Second

// rival arms, keeps or disarms the timer for a node that is preferred.
func (v *Service) rival(armed <-chan time.Time) <-chan time.Time {
	wishes := look(&v.inbox, func() election.Intents { return v.inbox.wishes })
	if !v.conf.Failback || wishes.Control.Paused || wishes.Rival(v.node.Self.Node, v.conf.Priority) == "" {
		return nil
	}
	if armed == nil {
		return time.After(max(settledIn, time.Until(v.mem.rivalBy)))
	}
	return armed
}
