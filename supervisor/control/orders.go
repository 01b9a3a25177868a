package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"understudy/election"
	"understudy/supervisor/wait"
)

// Pause has nobody promoted from now on, or lets it happen again. It tells whether that is a change. It is refused while a
// switchover is waited for: the active node may have given the service away already, and nobody could take it.
func (c *Cluster) Pause(ctx context.Context, service string, paused bool, by, why string) (changed bool, err error) {
	if _, err := c.Services(ctx, service); err != nil {
		return false, err
	}
	var found election.Control
	err = c.order(ctx, service, func(old election.Control) (election.Control, bool) {
		found = old
		differs := old.Paused != paused || !paused && old.Before != nil
		if !differs || old.Stopped || paused && underWay(old.Switchover) {
			return old, false
		}
		changed = true
		now := time.Now().UTC()
		old.Paused, old.By, old.Why, old.Since, old.Before = paused, by, why, &now, nil
		return old, true
	})
	handing := found.Switchover
	switch {
	case err == nil && found.Stopped:
		return false, refused("%s is %s%s: `understudy start %s` first", service, found.Words(),
			inBrackets(strings.TrimSpace(agoWords(found.Since, time.Now()))), service)
	case err == nil && !changed && paused && !found.Paused:
		return false, refused("%s has ordered that %s give %s to %s, and a pause now could leave no node active: "+
			"pause it when that is done, after %v at the latest",
			handing.By, handing.From, service, cmp.Or(handing.To, "the first node that can"),
			time.Until(handing.Deadline).Round(time.Second))
	}
	return changed, err
}

func underWay(s *election.Switchover) bool { return s != nil && time.Now().Before(s.Deadline) }

// Stop has the active node stop the service, and nobody start it again; or has a node start it. A pause is kept meanwhile.
func (c *Cluster) Stop(ctx context.Context, service string, stopped bool, by, why string) (changed bool, err error) {
	v, err := c.one(ctx, service)
	if err == nil && stopped && len(v.Copies) > 0 {
		err = refused("a copy of %s runs on every node: stop their supervisors, first those of the followers", service)
	}
	if err != nil {
		return false, err
	}
	err = c.order(ctx, service, func(old election.Control) (election.Control, bool) {
		if old.Stopped == stopped {
			return old, false
		}
		changed = true
		now := time.Now().UTC()
		if stopped && old.Paused {
			old.Before = &election.Pause{By: old.By, Why: old.Why, Since: old.Since}
		}
		old.Paused, old.Stopped, old.By, old.Why, old.Since = stopped, stopped, by, why, &now
		return old, true
	})
	return changed, err
}

// WaitCarriedOut waits until a service that was stopped is active nowhere, or one that was started is active.
func (c *Cluster) WaitCarriedOut(ctx context.Context, service string, stopped bool) (v ServiceStatus, err error) {
	for {
		asked := time.Now()
		switch now, err := c.one(ctx, service); {
		case err != nil && ctx.Err() == nil:
			return v, err
		case err != nil:
			return v, late(cutOff(ctx, asked, err), v.wants())
		default:
			v = now
		}
		switch {
		case stopped && v.Active == "" && v.Lock == "", !stopped && v.Active != "":
			return v, nil
		case !wait.For(ctx, departing):
			return v, late(context.Cause(ctx), v.wants())
		}
	}
}

// wants is what keeps a service from being as it was ordered.
func (s ServiceStatus) wants() string {
	if len(s.Problems) > 0 {
		return s.Problems[0].What
	}
	return "it is active on " + s.Active
}

// ErrFailed says that a reload did harm.
var ErrFailed = errors.New("reload")

// Restart orders a new start of the child where it is, and Reload its reload signal; they return once that is done. A primary gives the
// lock back for that, as what is started is compared with the other copies.
func (c *Cluster) Restart(ctx context.Context, service, by string) error {
	return c.orderActive(ctx, service, by, true, func(o *election.Control) **election.Order { return &o.Restart })
}

// Reload orders that the child be sent its reload signal.
func (c *Cluster) Reload(ctx context.Context, service, by string) error {
	return c.orderActive(ctx, service, by, false, func(o *election.Control) **election.Order { return &o.Reload })
}

// orderActive orders something of the active node, and waits until it is done.
func (c *Cluster) orderActive(
	ctx context.Context, service, by string, restart bool, field func(*election.Control) **election.Order,
) (err error) {
	v, err := c.one(ctx, service)
	if err != nil {
		return err
	}
	order := election.Order{ID: rand.Text(), Token: v.Token, By: by}
	if restart && len(v.Copies) > 0 {
		order.Node = v.Active
	}
	switch {
	case v.Active == "" && v.Stopped:
		return refused("%s is %s: `understudy start %s` first", service, v.Order, service)
	case v.Active == "":
		return refused("no node is active")
	case order.Node != "" && v.Paused:
		return refused("no copy of %s would be promoted again while it is %s: `understudy resume %s` first", service, v.Order, service)
	}
	err = c.order(ctx, service, func(o election.Control) (election.Control, bool) {
		*field(&o) = &order
		return o, true
	})
	defer func() {
		if err != nil {
			takeBack(ctx, c.znodes, service, order.ID)
		}
	}()
	for err == nil {
		n, readErr := c.read(ctx, election.Paths{Root: c.root, Service: service}.Control())
		if readErr != nil {
			return readErr
		}
		control := election.ParseControl(n.data)
		e := *field(&control)
		if e != nil && e.ID == order.ID && e.Failed != "" {
			err = fmt.Errorf("%w: %s", ErrFailed, e.Failed)
			return err
		}
		if e == nil || e.ID != order.ID {
			now, err := c.one(ctx, service)
			switch {
			case err != nil || now.Token == v.Token || order.Node != "" && now.Active == order.Node:
			case order.Node != "" && now.Active != "":
				err = fmt.Errorf("%s runs on %s now, not on %s%s", service, now.Active, order.Node, fate(now, order.Node))
			default: // another activation has taken the order's away
				err = fmt.Errorf("%s was not active any more: nothing was done", v.Active)
			}
			return err
		}
		if !wait.For(ctx, lookEvery) {
			err = fmt.Errorf("%s has not done it yet%s: %w", v.Active, c.meanwhile(ctx, v), context.Cause(ctx))
		}
	}
	return err
}

// meanwhile describes an active node that does not get ready.
func (c *Cluster) meanwhile(ctx context.Context, before ServiceStatus) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	now, err := c.one(ctx, before.Service)
	if err != nil {
		return ""
	}
	if m := member(now, before.Active); m.Role != election.RoleActive || m.Health != election.HealthOK {
		return ", it is " + state(m)
	}
	return ""
}

// takeBack removes an order that nobody waits for any more.
func takeBack(ctx context.Context, z znodes, service, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = z.order(ctx, service, func(o election.Control) (election.Control, bool) {
		switch {
		case o.Switchover != nil && o.Switchover.ID == id:
			o.Switchover = nil
		case o.Restart != nil && o.Restart.ID == id:
			o.Restart = nil
		case o.Reload != nil && o.Reload.ID == id:
			o.Reload = nil
		case o.Copy != nil && o.Copy.ID == id:
			o.Copy = nil
		default:
			return o, false
		}
		return o, true
	})
}
