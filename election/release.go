package election

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// Release gives the lock back together with the breadcrumb if that is ours; one that names a node that could not be fenced
// stays. The caller has proved the child's tree dead: P2. It returns nil when the lock is gone. An error says that the session or
// ctx is over, or why ZooKeeper does not do it: then the lock is kept, and may be given back later.
//
// It deletes only our own lock: its transaction succeeds only while nobody has claimed the lock after us.
func (c *Claim) Release(ctx context.Context) error {
	look := c.unanswered // an unanswered inscription may have been carried out
	for again := (pacing{}); ; look = true {
		if look && !c.gone {
			if err := c.recheck(ctx); err != nil && !errors.Is(err, ErrLost) {
				return err
			}
		}
		if c.gone { // by a call whose answer was lost, or by hand
			return c.withdraw(ctx)
		}
		c.unanswered = false
		ops := c.surrender()
		for _, path := range c.ownZnodes {
			ops = append(ops, remove(path))
		}
		failed, err := c.s.multi(ctx, ops...)
		switch {
		case err == nil:
			c.s.locks.drop(c.paths.Service)
			return nil
		case failed >= 0 && c.dropOwn(ops[failed]):
			continue
		case !again.passes(err):
			return fmt.Errorf("give the lock back: %w", err)
		}
		if err := again.wait(ctx, c.s.client, err); err != nil {
			return err
		}
	}
}

// surrender deletes the lock, and the breadcrumb if that is ours. The claim's name stays until the next claim deletes it: whoever looks
// knows by it that nobody has claimed since.
func (c *Claim) surrender() []any {
	ops := []any{there(c.name)}
	if c.found && c.Previous == nil {
		ops = append(ops, &zk.DeleteRequest{Path: c.paths.Crumb(), Version: c.version})
		if c.record != "" {
			ops = append(ops, remove(c.paths.record(c.record)))
		}
	}
	return append(ops, remove(c.paths.Lock()))
}

// withdraw removes a breadcrumb that is still ours although the lock is not: our child is dead, and nobody has to wait for it.
func (c *Claim) withdraw(ctx context.Context) error {
	err := retry(ctx, c.s.client, func() error {
		look, err := c.s.names(ctx, c.paths)
		if errors.Is(err, zk.ErrNoNode) {
			return nil // all znodes of the service were deleted
		}
		if err != nil {
			return err
		}
		if err := c.readCrumb(ctx); err != nil || !c.found || c.Previous != nil {
			return err
		}
		return c.s.change(ctx, look, BreadCrumb{Name: c.record}, c.version, &zk.DeleteRequest{Path: c.paths.Crumb(), Version: c.version})
	})
	if err != nil {
		return fmt.Errorf("remove the breadcrumb: %w", err)
	}
	c.s.locks.drop(c.paths.Service)
	return nil
}

// dropOwn forgets an own znode that is gone already; false: op deletes none.
func (c *Claim) dropOwn(op any) bool {
	d, ok := op.(*zk.DeleteRequest)
	if !ok {
		return false
	}
	i := slices.Index(c.ownZnodes, d.Path)
	if i < 0 {
		return false
	}
	c.ownZnodes = slices.Delete(c.ownZnodes, i, i+1)
	return true
}
