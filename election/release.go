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
	if c.gone {
		return c.withdraw(ctx)
	}
	if c.unanswered { // an unanswered inscription may have been carried out
		c.seen = nil
	}
	for again := (pacing{}); ; {
		if err := c.sure(ctx); errors.Is(err, ErrLost) { // by a call whose answer was lost, or by hand
			return c.withdraw(ctx)
		} else if err != nil {
			return err
		}
		c.unanswered = false
		ops := c.surrender()
		for _, path := range c.stakes {
			ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
		}
		failed, err := c.s.multiIn(ctx, c.seen, ops...)
		switch {
		case err == nil:
			c.s.locks.drop(c.paths.Service)
			return nil
		case failed >= 0 && c.isStake(ops[failed]): // gone already
			continue
		case !again.passes(err):
			return fmt.Errorf("give the lock back: %w", err)
		}
		if err := again.wait(ctx, c.s.client, err); err != nil {
			return err
		}
		c.seen = nil
	}
}

// surrender deletes the lock, and the breadcrumb if that is ours.
func (c *Claim) surrender() []any {
	ops := []any{c.unclaimed()}
	if c.found && c.Previous == nil {
		ops = append(ops, &zk.DeleteRequest{Path: c.paths.Crumb(), Version: c.version})
	}
	return append(ops, &zk.DeleteRequest{Path: c.paths.Lock(), Version: -1})
}

// withdraw removes a breadcrumb that is still ours although the lock is not: our child is dead, and nobody has to wait for it.
func (c *Claim) withdraw(ctx context.Context) error {
	err := retry(ctx, c.s.client, func() error {
		dir, err := c.s.getStat(ctx, c.paths.Dir())
		if errors.Is(err, zk.ErrNoNode) {
			return nil // all znodes of the service were deleted
		}
		if err != nil {
			return err
		}
		if err := c.readCrumb(ctx); err != nil || !c.found || c.Previous != nil {
			return err
		}
		_, err = c.s.multi(ctx, &zk.CheckVersionRequest{Path: c.paths.Dir(), Version: dir.Version},
			&zk.DeleteRequest{Path: c.paths.Crumb(), Version: c.version})
		return err
	})
	if err != nil {
		return fmt.Errorf("remove the breadcrumb: %w", err)
	}
	c.s.locks.drop(c.paths.Service)
	return nil
}

// isStake reports whether an operation deletes a stake, and drops that.
func (c *Claim) isStake(op any) bool {
	d, ok := op.(*zk.DeleteRequest)
	if !ok {
		return false
	}
	i := slices.Index(c.stakes, d.Path)
	if i < 0 {
		return false
	}
	c.stakes = slices.Delete(c.stakes, i, i+1)
	return true
}
