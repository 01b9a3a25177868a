package replica

import (
	"context"
	"errors"
	"strings"
	"time"

	"understudy/supervisor/host"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// Promote makes the copy the primary in a term that has its tree. orders is where promote runs; nil: in the copy's tree. Its writes are
// acknowledged once one of the copies on these nodes has them, too; nil: the program knows which.
func (c *Copy) Promote(token int64, orders host.Tree, counted []string) func(context.Context, host.Process) error {
	return func(ctx context.Context, first host.Process) error {
		a := c.primary(token)
		if counted != nil {
			a.env = append(a.env, countedIs(counted))
		}
		ctx, cancel := a.bounded(ctx)
		defer cancel()
		there := a
		if orders != nil {
			there.tree = orders
		}
		began := time.Now()
		if err := there.give(ctx, first, a.conf.Promotes()); err != nil {
			return err
		}
		if err := a.until(ctx, Primary); err != nil {
			return err
		}
		c.log.Info("the copy is promoted", "token", token, "took", time.Since(began).Round(time.Millisecond))
		return nil
	}
}

func countedIs(nodes []string) string { return "UNDERSTUDY_COPIES=" + strings.Join(nodes, " ") }

// Count has the promoted copy acknowledge a write once one of the copies on these nodes has it. After an error others may count, too.
func (c *Copy) Count(ctx context.Context, token int64, nodes []string) error {
	a := c.primary(token)
	a.env = append(a.env, countedIs(nodes))
	return a.order(ctx, a.conf.Replicated.Copies)
}

// Reaches is how far the promoted copy's data goes now.
func (c *Copy) Reaches(ctx context.Context, token int64) (uint64, error) {
	said := c.primary(token).position(ctx)
	if said.position == nil {
		return 0, errors.New(said.why)
	}
	return *said.position, nil
}

// Demote makes the copy a follower, of nobody yet, in a term that has its tree. P1: it is asked what it is once nothing is left in orders
// that could promote it again. Where it cannot be asked, its answer counts, and nothing of the promotion is left when it gives that.
func (c *Copy) Demote(ctx context.Context, token int64, first host.Process, orders host.Tree) error {
	a := c.primary(token)
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	there := a
	there.tree, there.env = orders, Active{}.Environ(false)
	began := time.Now()
	if !a.tells() { // P1: nobody asks afterwards
		if err := orders.Kill(ctx); err != nil {
			return err
		}
	}
	if err := there.give(ctx, first, a.conf.Demotes()); err != nil {
		return err
	}
	if err := orders.End(ctx); err != nil {
		return err
	}
	if err := a.until(ctx, Follower); err != nil {
		return err
	}
	c.log.Info("the copy is demoted", "token", token, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// primary are the commands of the copy in a term.
func (c *Copy) primary(token int64) asking {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.asking(Active{Node: c.cfg.Node})
	a.env, a.token = Active{Node: c.cfg.Node, Address: c.conf.Replicated.Address}.Environ(true), token
	return a
}

var errClosed = errors.New("this supervisor ends")

// Return takes the tree back from a term that has demoted the copy, with its programs, which run on. From then on it ends with its
// supervisor, as any follower. After an error the term has to end the tree, and then to call Free.
func (c *Copy) Return(ctx context.Context, tree host.Tree, programs *unit.CarriedRun) error {
	c.mu.Lock()
	lease := c.lease
	if !c.held || c.tree != tree {
		lease = nil
	}
	c.mu.Unlock()
	if lease == nil {
		return errStale
	}
	if err := tree.Move(ctx, lease.Epoch, nil); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	c.held, c.resume, c.following = false, programs, Active{}
	c.talk, c.hush = context.WithCancel(context.Background())
	wait.Poke(c.poke)
	return nil
}

const notSaved = "cannot save how far the data of the promoted copy goes"

// Attend looks at a promoted copy until ctx ends, or until it says that
// it is a follower. Once it is the primary it follows nobody on its own.
func (c *Copy) Attend(token int64) func(context.Context) error {
	return func(ctx context.Context) error {
		var kept time.Time // when its position was kept, and what it was
		var keptAt uint64
		for {
			a := c.primary(token)
			if !wait.For(ctx, a.conf.Replicated.Interval) {
				return nil
			}
			switch r, _ := a.role(ctx); r {
			case Follower:
				return ErrDemoted
			case Primary:
				c.mu.Lock()
				tied := c.state.Source != Source{}
				c.mu.Unlock()
				p := a.position(ctx).position
				if p != nil {
					c.reached(*p)
					c.isAt(token, *p)
				}
				if grown := p != nil && *p > keptAt && time.Since(kept) >= keepEvery; !tied && !grown {
					continue
				}
				if err := c.keepState(func(s *state) { s.Source = Source{} }); err != nil {
					c.log.Warn(notSaved, "error", err)
				}
				kept = time.Now()
				if p != nil {
					keptAt = *p
				}
			}
		}
	}
}

// reached notes a position. It is kept for good with the next change of the state.
func (c *Copy) reached(p uint64) {
	c.mu.Lock()
	c.state.Position = max(c.state.Position, p)
	c.mu.Unlock()
}
