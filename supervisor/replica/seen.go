package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"understudy/supervisor/child/probe"
	"understudy/supervisor/config"
	"understudy/supervisor/copies"
	"understudy/supervisor/printable"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// errNotAsked says that nothing is known of the primary, because its check could not be run here.
var errNotAsked = errors.New("seen_by")

const seenWarnEvery = time.Minute

// SeenPrimary is what this node sees of the primary from outside.
type SeenPrimary struct {
	Of   Active
	Well bool
	Why  string // it is not
}

// At is how far the copy's data goes.
type At struct {
	Token    int64 // of the promotion whose data it is
	Position uint64
	Time     time.Time // when it was asked
}

// outside is what a copy knows besides of the primary, and of its place behind it. Copy.mu guards it.
type outside struct {
	primary *SeenPrimary // nil: it cannot tell
	at      At
	lead    lead
}

// lead is how far the primary elsewhere has told last that its data goes.
type lead struct {
	of       Active
	position uint64
	asked    time.Time // when it was, by that one's clock
	seen     time.Time // when this node read that first; zero: it had told that before
}

// Sees is what this node sees of the primary that it follows; false: it cannot tell.
func (c *Copy) Sees() (SeenPrimary, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.outside.primary; s != nil && s.Of == c.active {
		return *s, true
	}
	return SeenPrimary{}, false
}

// At is how far the copy has said last that its data goes; false: it has not.
func (c *Copy) At() (At, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outside.at, c.outside.at.Token != 0
}

// noteAt notes how far the copy's data goes.
func (c *Copy) noteAt(token int64, p uint64) {
	c.mu.Lock()
	c.outside.at = At{token, p, time.Now()}
	c.mu.Unlock()
}

// NoteLead keeps how far the data of a primary elsewhere goes, if nothing as new is known: should it come back with less, that is a loss.
// asked is when it was asked for that, by its own clock.
func (c *Copy) NoteLead(of Active, position uint64, asked time.Time) {
	now := copies.Lead{Node: of.Node, Era: of.Era, Token: of.Token, Position: position}
	c.mu.Lock()
	if l := &c.outside.lead; l.of != of { // that may be of any time
		*l = lead{of: of, position: position, asked: asked}
	} else if !l.asked.Equal(asked) {
		*l = lead{of, position, asked, time.Now()}
	}
	c.mu.Unlock()
	kept, unread := c.data.known()
	was := kept.Saw
	if unread != nil || was.Era == now.Era && cmp.Or(cmp.Compare(now.Token, was.Token), cmp.Compare(now.Position, was.Position)) <= 0 {
		return
	}
	if err := c.data.keep(func(s *state) { s.Saw = now }); err != nil {
		c.log.Warn(notSaved, "error", err)
	}
}

// Leader is the promoted copy on another node; the zero value: none is known.
func (c *Copy) Leader() Active {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active
}

// keepSeeing looks at the primary from outside, while the follower is well and was told to follow it, until ctx ends.
func (c *Copy) keepSeeing(ctx context.Context, run *unit.Run) {
	defer c.saw(nil)
	var of Active
	failures, warned := 0, time.Time{}
	for {
		c.mu.Lock()
		active, conf, a := c.active, c.conf.Replicated, c.asking(c.active)
		by, can := conf.SeenBy, c.canTell(run)
		c.mu.Unlock()
		pause := conf.Interval
		if by == nil || !can {
			of = Active{}
			c.saw(nil)
		} else {
			if of != active {
				of, failures = active, 0
				c.saw(nil)
			}
			began := time.Now()
			err := a.see(ctx, *by, active)
			if ctx.Err() != nil {
				return
			}
			failures++
			if err == nil {
				failures = 0
				c.saw(&SeenPrimary{Of: of, Well: true})
			} else if errors.Is(err, errNotAsked) {
				failures = 0
				c.saw(nil)
				if time.Since(warned) > seenWarnEvery {
					warned = time.Now()
					c.log.Warn("this node cannot look at the primary", "active", active.Node, "error", err)
				}
			} else if failures >= by.Failures {
				c.saw(&SeenPrimary{Of: of, Why: err.Error()})
			}
			pause = time.Until(began.Add(by.Interval))
		}
		if !wait.For(ctx, pause) {
			return
		}
	}
}

// canTell reports whether the copy is a follower of the primary, whether or not it reaches it. The caller holds mu.
func (c *Copy) canTell(run *unit.Run) bool {
	s, _ := c.data.known()
	return wait.Closed(run.Ready()) && c.shown.Role == Follower && c.shown.Ill == "" &&
		c.active.Node != "" && c.active.Node != c.cfg.Node &&
		s.Era == c.active.Era && (s.Toward == c.active.Token || s.Toward == 0 && s.Followed == c.active.Token)
}

// saw notes what was seen. Of failures in a row the first reason counts.
func (c *Copy) saw(now *SeenPrimary) {
	c.mu.Lock()
	was := c.outside.primary
	changed := (was == nil) != (now == nil) || was != nil && (was.Of != now.Of || was.Well != now.Well)
	if changed {
		c.outside.primary = now
	}
	c.mu.Unlock()
	if !changed {
		return
	}
	switch {
	case now != nil && !now.Well:
		c.log.Warn("this node does not reach the primary", "active", now.Of.Node, "why", now.Why)
	case now != nil && was != nil && was.Of == now.Of:
		c.log.Info("this node reaches the primary again", "active", now.Of.Node)
	}
	c.cfg.News()
}

// see looks once.
func (a asking) see(ctx context.Context, by config.SeenBy, active Active) error {
	ctx, cancel := context.WithTimeout(ctx, by.Timeout)
	defer cancel()
	host, port := printable.SplitPort(active.Address)
	if port == "" && strings.Contains(by.TCP+by.HTTP, "UNDERSTUDY_ACTIVE_PORT") {
		return fmt.Errorf("%w: the address %s of %s has no port", errNotAsked, host, active.Node)
	}
	fill := func(text string) string {
		return config.Fill(text, func(name string) string {
			return map[string]string{
				"UNDERSTUDY_ACTIVE_ADDRESS": host, "UNDERSTUDY_ACTIVE_PORT": port, "UNDERSTUDY_ACTIVE_HOST": active.Host,
				"UNDERSTUDY_ACTIVE_NODE": active.Node,
			}[name]
		})
	}
	look := probe.Probe{Kind: probe.KindExec, Argv: by.Exec, Run: func(ctx context.Context, argv []string) ([]byte, int, error) {
		said, code, err := a.unit.Ask(ctx, a.tree, a.conf.Processes[0], argv, a.env, a.token, by.Timeout)
		if err != nil && ctx.Err() == nil { // it did not run
			err = fmt.Errorf("%w: %w", errNotAsked, err)
		}
		return said, code, err
	}}
	switch {
	case by.TCP != "":
		look = probe.Probe{Kind: probe.KindTCP, Target: fill(by.TCP)}
	case by.HTTP != "":
		look = probe.Probe{Kind: probe.KindHTTP, Target: fill(by.HTTP)}
	}
	return look.Check(ctx)
}
