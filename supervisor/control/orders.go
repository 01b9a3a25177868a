package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
)

// Services lists the services asked for: all when none is named.
func (c *Cluster) Services(ctx context.Context, asked ...string) ([]string, error) {
	return c.services(ctx, asked)
}

// Pause has nobody promoted from now on, or lets it happen again. It tells whether that is a change. It is refused while a
// switchover is waited for: the active node may have given the service away already, and nobody could take it.
func (c *Cluster) Pause(ctx context.Context, service string, paused bool, by, why string) (changed bool, err error) {
	if _, err := c.services(ctx, []string{service}); err != nil {
		return false, err
	}
	var handing *election.Switchover
	err = c.order(ctx, service, func(old election.Control) (election.Control, bool) {
		differs := old.Paused != paused
		if handing = nil; old.Switchover != nil && paused && differs && time.Now().Before(old.Switchover.Deadline) {
			handing = old.Switchover
			return old, false
		}
		changed = changed || differs
		now := time.Now().UTC()
		old.Paused, old.By, old.Why, old.Since = paused, by, why, &now
		return old, differs
	})
	if err == nil && handing != nil {
		return false, refused("%s has ordered that %s give %s to %s, and a pause now could leave it with nobody: pause it when that is done, after %v at the latest",
			handing.By, handing.From, service, cmp.Or(handing.To, "whoever is first"), time.Until(handing.Deadline).Round(time.Second))
	}
	return changed, err
}

// order changes what operators want of a service: what another one orders at the same time is not lost, nor is what this
// version does not know.
func (c *Cluster) order(ctx context.Context, service string, change func(election.Control) (election.Control, bool)) error {
	path := election.Paths{Root: c.root, Service: service}.Control()
	for tries := range patience {
		if err := backOff(ctx, tries); err != nil {
			return err
		}
		n, err := c.read(ctx, path)
		if err != nil {
			return err
		}
		next, changed := change(election.ParseControl(n.data))
		if !changed {
			return nil
		}
		data := next.Merge(n.data)
		_, err = ask(ctx, "write "+path, func() (*zk.Stat, error) {
			if n.exists {
				return c.conn.Set(path, data, n.stat.Version)
			}
			_, err := c.conn.Create(path, data, 0, c.acl)
			return nil, err
		})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode), lost(err):
			continue // what was written without our knowing is read, or written once more
		case errors.Is(err, zk.ErrNoAuth):
			return err
		}
		return fmt.Errorf("whether it is done is not known, ask again: %w", err)
	}
	return fmt.Errorf("the orders of %s change too quickly: nothing is done, try again", service)
}
