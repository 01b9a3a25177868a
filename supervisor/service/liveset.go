package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/loglimit"
	"understudy/supervisor/replica"
	"understudy/supervisor/wait"
)

// The live set of a replicated service is the primary's node and those whose copies its program counts before it acknowledges a write. It
// is recorded in ZooKeeper, and never smaller than what the program counts: each acknowledged write is on two copies of it, so that any
// but one of these show the newest. So it grows in the record first, and then in the program. It shrinks in the program first, and in the
// record once each copy that stays has all that was acknowledged by then. It keeps one copy besides the primary's: until one follows,
// writes wait.

// followers are the nodes whose copies follow the primary here, and are well.
type followers struct {
	token int64 // of its promotion
	nodes []string
	known []string // the nodes that have, or had, a copy
}

// noteFollowers notes which do, by what is seen of them.
func (c *copyHere) noteFollowers(seen election.CopiesSeen) {
	now := followers{token: seen.Token, known: seen.Known}
	for _, one := range seen.Copies {
		if one.Node != seen.Holder && one.Era == seen.Era && one.Followed == seen.Token && one.Toward == 0 &&
			one.Role == string(replica.Follower) && one.Why == "" {
			now.nodes = append(now.nodes, one.Node)
		}
	}
	c.mu.Lock()
	c.followers = now
	c.mu.Unlock()
}

func (c *copyHere) follow() followers {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.followers
}

// liveSet keeps it while the copy here is the primary.
type liveSet struct {
	me     string
	token  int64
	conf   func() config.Replicated
	record interface { // of the promotion
		Live(context.Context) (p election.Promotion, ours bool, err error)
		SetLive(ctx context.Context, over election.Promotion, live []string) error
	}
	primary interface {
		Count(ctx context.Context, nodes []string) error
		Reaches(context.Context) (uint64, error)
	}
	follow func() followers
	at     func(ctx context.Context, node string) (election.At, bool, error)
	beats  time.Duration // between two of them a node tells how far its copy is
	log    hclog.Logger

	counted []string // the others that the program may count; nil: it was not told
	sure    bool     // it counts these
	stay    []string // the others that would have stayed at the last look
}

// attends keeps the live set beside what else looks at the promoted copy.
func (t *term) attends(attend func(context.Context) error) func(context.Context) error {
	v := t.v
	if !v.copy.compared() {
		return attend
	}
	l := &liveSet{
		me: v.node.Self.Node, token: t.claim.Token, conf: func() config.Replicated { return *v.Given().Replicated },
		record: t.claim, primary: v.copy.Promotion(t.claim.Token), follow: v.copy.follow, at: t.cand.Copies().At,
		beats: t.s.LeaseLength() / 3, log: v.log, counted: t.promotion.counted, sure: true,
	}
	return func(ctx context.Context) error {
		ctx, enough := context.WithCancel(ctx)
		var keeps sync.WaitGroup
		keeps.Go(func() { l.keep(ctx) })
		defer keeps.Wait()
		defer enough()
		return attend(ctx)
	}
}

func (l *liveSet) keep(ctx context.Context) {
	warns := loglimit.Line{Log: l.log, Words: "the live set cannot be changed", Window: saySeenAgain}
	for wait.For(ctx, l.conf().Interval) {
		if err := l.look(ctx); err != nil && ctx.Err() == nil {
			warns.Say(l.me, "error", err)
		}
	}
}

// look changes the live set once, if it has to be changed. Whatever is not known leaves the record as it is.
func (l *liveSet) look(ctx context.Context) error {
	follow, told := l.follow(), len(l.conf().Copies) > 0
	if follow.token != l.token || !told && l.counted == nil {
		return nil
	}
	now, ours, err := l.record.Live(ctx)
	switch {
	case err != nil || !ours:
		return err
	case !told: // it is not told any more, and may count others
		if err = l.record.SetLive(ctx, now, nil); err == nil {
			l.counted = nil
		}
		return err
	case l.counted == nil: // it may count all that are known, until it is told
		return l.grow(ctx, now, election.Joined(follow.known, l.me))
	}
	others := besides(now.Live, l.me)
	stay := slices.DeleteFunc(slices.Clone(others), func(node string) bool { return !slices.Contains(follow.nodes, node) })
	was := l.stay
	l.stay = stay
	live := election.Joined(election.Joined(now.Live, l.counted...), follow.nodes...)
	gains := len(live) > len(now.Live) || len(election.Joined(l.counted, stay...)) > len(l.counted)
	switch {
	case gains, len(stay) == len(others) && !l.counts(others):
		return l.grow(ctx, now, live)
	case len(stay) == 0, len(stay) == len(others), !slices.Equal(stay, was): // it may be back at once
		return nil
	}
	return l.shrink(ctx, now, stay)
}

// counts reports whether the program is known to count these.
func (l *liveSet) counts(nodes []string) bool { return l.sure && slices.Equal(l.counted, nodes) }

// grow has more copies count. The record is written even if it has them: an earlier change of it, whose outcome was not known, may have
// less, and fails from then on.
func (l *liveSet) grow(ctx context.Context, now election.Promotion, live []string) error {
	if err := l.record.SetLive(ctx, now, live); err != nil {
		return err
	}
	return l.count(ctx, besides(live, l.me))
}

// count has the program count these copies.
func (l *liveSet) count(ctx context.Context, nodes []string) error {
	l.counted, l.sure = election.Joined(l.counted, nodes...), false
	if err := l.primary.Count(ctx, nodes); err != nil {
		return fmt.Errorf("copies: %w", err)
	}
	l.counted, l.sure = nodes, true
	l.log.Info("a write is acknowledged once one of these copies has it", "copies", nodes, "token", l.token)
	return nil
}

var errBehind = errors.New("not every copy that stays has all the data yet")

// shrink has fewer copies count.
func (l *liveSet) shrink(ctx context.Context, now election.Promotion, stay []string) error {
	if !l.counts(stay) {
		if err := l.count(ctx, stay); err != nil {
			return err
		}
	}
	all, err := l.primary.Reaches(ctx) // which is beyond all that others have acknowledged
	if err != nil {
		return err
	}
	conf := l.conf()
	bounded, enough := context.WithTimeoutCause(ctx, l.beats+conf.Timeout+2*conf.Interval, errBehind)
	defer enough()
	for _, node := range stay {
		for !l.has(bounded, node, all) {
			if !wait.For(bounded, askLiveAgain) {
				return context.Cause(bounded)
			}
		}
	}
	return l.record.SetLive(ctx, now, election.Joined(stay, l.me))
}

// askLiveAgain is the pause between two looks at how far a copy is.
const askLiveAgain = 200 * time.Millisecond

// has reports whether a node's copy has told that it has the primary's data up to there.
func (l *liveSet) has(ctx context.Context, node string, all uint64) bool {
	at, ok, err := l.at(ctx, node)
	return err == nil && ok && at.Token == l.token && at.Position >= all
}

// besides are the nodes without one.
func besides(nodes []string, me string) []string {
	return slices.DeleteFunc(slices.Clone(nodes), func(node string) bool { return node == me })
}
