package replica

import (
	"context"
	"errors"
	"strings"
	"time"

	"understudy/supervisor/host"
	"understudy/supervisor/wait"
)

// Promotion is the copy in a term that has its tree, and promotes it.
type Promotion struct {
	c     *Copy
	token int64
}

// Promotion is the copy in the term with this token.
func (c *Copy) Promotion(token int64) Promotion { return Promotion{c, token} }

// Note keeps, before the copy is promoted, that its data is that of this promotion.
func (p Promotion) Note(era int64) error {
	return p.c.data.keep(func(s *state) { s.Era, s.Followed, s.Toward, s.Diverges = era, p.token, 0, true })
}

// Promote makes the copy the primary in a term that has its tree. orders is where promote runs; nil: in the copy's tree. Its writes are
// acknowledged once one of the copies on these nodes has them, too; nil: the program knows which.
func (p Promotion) Promote(orders host.Tree, counted []string) func(context.Context, host.Process) error {
	return func(ctx context.Context, first host.Process) error {
		a := p.asking()
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
		p.c.log.Info("the copy is promoted", "token", p.token, "took", time.Since(began).Round(time.Millisecond))
		return nil
	}
}

func countedIs(nodes []string) string { return "UNDERSTUDY_COPIES=" + strings.Join(nodes, " ") }

// Count has the promoted copy acknowledge a write once one of the copies on these nodes has it. After an error others may count, too.
func (p Promotion) Count(ctx context.Context, nodes []string) error {
	a := p.asking()
	a.env = append(a.env, countedIs(nodes))
	return a.order(ctx, a.conf.Replicated.Copies)
}

// Reaches is how far the promoted copy's data goes now.
func (p Promotion) Reaches(ctx context.Context) (uint64, error) {
	said := p.asking().position(ctx)
	if said.position == nil {
		return 0, errors.New(said.why)
	}
	return *said.position, nil
}

// Demote makes the copy a follower, of nobody yet, in a term that has its tree. P1: it is asked what it is once nothing is left in orders
// that could promote it again. Where it cannot be asked, its answer counts, and nothing of the promotion is left when it gives that.
func (p Promotion) Demote(ctx context.Context, first host.Process, orders host.Tree) error {
	a := p.asking()
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
	p.c.log.Info("the copy is demoted", "token", p.token, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// asking are the commands of the copy in the term.
func (p Promotion) asking() asking {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	a := p.c.asking(Active{Node: p.c.cfg.Node})
	a.env, a.token = Active{Node: p.c.cfg.Node, Address: a.conf.Replicated.Address}.Environ(true), p.token
	return a
}

const notSaved = "cannot save how far the data of the promoted copy goes"

// Attend looks at a promoted copy until ctx ends, or until it says that
// it is a follower. Once it is the primary it follows nobody on its own.
func (p Promotion) Attend(ctx context.Context) error {
	c := p.c
	var kept time.Time // when its position was kept, and what it was
	var keptAt uint64
	for {
		a := p.asking()
		if !wait.For(ctx, a.conf.Replicated.Interval) {
			return nil
		}
		switch r, _ := a.role(ctx); r {
		case Follower:
			return ErrDemoted
		case Primary:
			known, _ := c.data.known()
			at := a.position(ctx).position
			if at != nil {
				c.data.reached(*at)
				c.noteAt(p.token, *at)
			}
			if grown := at != nil && *at > keptAt && time.Since(kept) >= keepEvery; known.Source == (Source{}) && !grown {
				continue
			}
			if err := c.data.keep(func(s *state) { s.Source = Source{} }); err != nil {
				c.log.Warn(notSaved, "error", err)
			}
			kept = time.Now()
			if at != nil {
				keptAt = *at
			}
		}
	}
}
