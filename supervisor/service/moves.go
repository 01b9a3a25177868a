package service

import (
	"context"
	"fmt"
	"time"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/wait"
)

// A service that moves from node to node all the time does nobody any good, and may do harm at each of them.

// recorded is what a former active's own last words on its term are waited for.
const recorded = 200 * time.Millisecond

// stayPut pauses the service when it has moved too often.
func (v *Service) stayPut(ctx context.Context, cand *election.Candidate, m config.Moves, token int64) {
	if m.Max <= 0 || !wait.For(ctx, recorded) {
		return
	}
	control := v.inbox.control()
	if control.Paused {
		return
	}
	past, err := cand.History.Past(ctx, 4*m.Max+2)
	if err != nil {
		v.log.Debug("cannot tell how often the service has moved", "service", v.name, "error", err)
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
	why := fmt.Sprintf("it moved %d times within %v; it stays where it is until `understudy resume %s`", n, m.Within, v.name)
	v.log.Error("the service moves too often", "service", v.name, "why", why)
	now := time.Now().UTC()
	err = cand.Control.Amend(ctx, func(c *election.Control) bool {
		if c.Paused || c.Switchover != nil && c.Switchover.Token == token || c.Since != nil && (control.Since == nil || c.Since.After(*control.Since)) {
			return false // somebody has ordered something
		}
		c.Paused, c.Why, c.By, c.Since = true, why, v.node.Self.Node, &now
		return true
	})
	if err != nil && ctx.Err() == nil {
		v.log.Error("the service could not be paused", "service", v.name, "error", err)
	}
}

// moved counts the times that a service went to another node without anybody's wish.
func moved(past []election.Activation, after time.Time) int {
	n := 0
	for i := 1; i < len(past); i++ {
		former, now := past[i-1], past[i]
		if former.Node != now.Node && !former.Reason.Planned() && now.Start.After(after) {
			n++
		}
	}
	return n
}
