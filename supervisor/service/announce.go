package service

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/wait"
)

// settling is how long a role has to last before it is announced: a hand-over passes through several,
// and the writes would delay it.
const settling = 50 * time.Millisecond

// announcer keeps members/<node> current.
type announcer struct {
	newest chan election.Member // capacity 1: not announced yet
	log    hclog.Logger
	done   func() // is told that it is current, and must return at once
}

func newAnnouncer(log hclog.Logger, done func()) announcer {
	return announcer{make(chan election.Member, 1), log, done}
}

// queue gives announceNewest something to announce, in place of an older state not announced yet. Only one goroutine calls it.
func (a announcer) queue(m election.Member) {
	for {
		select {
		case a.newest <- m:
			return
		case <-a.newest:
		}
	}
}

// announceNewest announces the newest state, until ctx ends.
func (a announcer) announceNewest(ctx context.Context, cand *election.Candidate) {
	for {
		select {
		case m := <-a.newest:
			if !wait.For(ctx, settling) {
				return
			}
			select {
			case m = <-a.newest:
			default:
			}
			err := cand.Members.Announce(ctx, m)
			if err == nil {
				a.done()
			} else if ctx.Err() == nil {
				a.log.Debug("cannot announce", "error", err)
				select {
				case a.newest <- m:
				default: // there is a newer one
				}
				if !wait.For(ctx, time.Second) {
					return
				}
			}
		case <-ctx.Done():
			return
		}
	}
}
