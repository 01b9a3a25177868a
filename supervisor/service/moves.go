package service

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/wait"
)

// moves limits how often a service moves from node to node by itself: one that keeps moving works nowhere, and may do harm everywhere.
type moves struct {
	service, node string
	intents       *intents
	log           hclog.Logger
}

// recorded is how long the previous active may take to write the end of its own term.
const recorded = 200 * time.Millisecond

// limit pauses the service when it has moved too often.
func (v moves) limit(ctx context.Context, cand *election.Candidate, m config.Moves, token int64) {
	if m.Max <= 0 || !wait.For(ctx, recorded) {
		return
	}
	control := v.intents.control()
	if control.Paused {
		return
	}
	past, err := cand.History.Past(ctx, 4*m.Max+2)
	if err != nil {
		v.log.Debug("cannot tell how often the service has moved", "error", err)
		return
	}
	after := time.Now().Add(-m.Within)
	if since := control.Since; since != nil && since.After(after) {
		after = *since // an operator has looked at it
	}
	n := moved(past, after)
	if n <= m.Max {
		return
	}
	why := fmt.Sprintf("it moved %d times within %v; it stays where it is until `understudy resume %s`", n, m.Within, v.service)
	v.log.Error("the service moves too often", "why", why)
	now := time.Now().UTC()
	err = cand.Control.Amend(ctx, func(c *election.Control) bool {
		if c.Paused || c.Switchover != nil && c.Switchover.Token == token ||
			c.Since != nil && (control.Since == nil || c.Since.After(*control.Since)) {
			return false // somebody has ordered something
		}
		c.Paused, c.Why, c.By, c.Since = true, why, v.node, &now
		return true
	})
	if err != nil && ctx.Err() == nil {
		v.log.Error("the service could not be paused", "error", err)
	}
}

// moved counts the times that a service went to another node though nobody had asked for it.
func moved(past []election.Activation, after time.Time) int {
	n := 0
	for i := 1; i < len(past); i++ {
		before, now := past[i-1], past[i]
		if before.Node != now.Node && !before.Reason.Planned() && now.Start.After(after) {
			n++
		}
	}
	return n
}
