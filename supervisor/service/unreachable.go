package service

import (
	"context"
	"fmt"
	"time"

	"understudy/election"
	"understudy/supervisor/copies"
	"understudy/supervisor/replica"
	"understudy/supervisor/service/role"
	"understudy/supervisor/wait"
)

// What other nodes see of this node's primary. P1 has no part in it: the service is given to another node as after any other failure.

// outside is what they see, and who could take the service over.
type outside struct {
	token int64  // of this promotion
	who   string // does not reach it: "for 2 of 3: b, c"; "": it counts as reachable
	why   string // as the first of them says
	to    string // this node's copy would be promoted
	unfit string // why none would; both are empty until that is known
}

// said is what is shown of it.
func (o outside) said() string {
	if o.who == "" {
		return ""
	}
	return "not reachable " + o.who
}

// unreachable ends a run whose primary others do not reach.
type unreachable struct{ outside }

func (e unreachable) Error() string { return e.said() + " (" + e.why + ")" }

const (
	nobodyTakes  = 5 * time.Second // after that, nobody takes over what this node has given up
	saySeenAgain = time.Minute
)

// seenByOthers notes what others see of the primary here, and returns how long to wait for a change.
func (c *comparing) seenByOthers(ctx context.Context, conf Conf, seen election.CopiesSeen) time.Duration {
	here, now, by := c.v.copy, outside{token: seen.Token}, conf.Replicated.SeenBy
	if by != nil {
		var all []copies.Vote
		for _, one := range seen.Copies {
			if one.Node != c.v.node.Self.Node && tells(one, seen) {
				all = append(all, copies.Vote{Node: one.Node, Well: one.Sees.Well, Why: one.Sees.Why})
			}
		}
		now.who, now.why = copies.Quorum(by.Quorum).Unreachable(all)
	}
	again := lookAgain
	if now.who != "" {
		again = c.heir(ctx, conf, seen)
		now.to, now.unfit = c.next.Node, c.next.Why
	} else {
		c.base = replica.At{}
	}
	here.mu.Lock()
	was := here.outside
	here.outside = now
	here.mu.Unlock()
	if was.who != "" || now.who != "" {
		c.v.view.wellness.seen(now.said())
	}
	return again
}

// tells reports whether a node says what it sees of the present primary.
func tells(one election.CopyReport, seen election.CopiesSeen) bool {
	return one.Sees != nil && one.Sees.Token == seen.Token && one.Era == seen.Era
}

// heir judges whose copy would be promoted if this node gave the service up, and returns when that is worth another look.
func (c *comparing) heir(ctx context.Context, conf Conf, seen election.CopiesSeen) (again time.Duration) {
	every := conf.Replicated.Interval + c.beats + time.Second // by then a copy that follows has told that it has what the primary had
	mine, ok := c.v.copy.At()
	switch {
	case !ok || mine.Token != seen.Token:
		c.base, c.next = replica.At{}, copies.Verdict{Why: "the position of this node's copy is not known yet"}
		return every
	case c.base.Token != seen.Token:
		c.next = copies.Verdict{}
	case time.Since(c.base.Time) < every:
		return every - time.Since(c.base.Time)
	default:
		told := heirs(c.v.node.Self.Node, mine.Position, c.base.Position, seen, func(node string) (election.At, bool) {
			at, ok, err := c.all.At(ctx, node)
			return at, ok && err == nil
		})
		c.next = rulesOf(conf, seen).Judge(told)
	}
	c.base, c.base.Time = mine, time.Now()
	return every
}

// heirs are the copies as they would be compared, the primary's position being mine. One that has told since that it has all up to base
// follows, and so will have all; of others the newest position counts that is known.
func heirs(me string, mine, base uint64, seen election.CopiesSeen, at func(node string) (election.At, bool)) []copies.Told {
	told := []copies.Told{{Node: me, Era: seen.Era, Followed: seen.Token, Position: &mine}}
	for _, one := range seen.Copies {
		t := copies.Told{
			Node: one.Node, Era: one.Era, Followed: one.Followed, Toward: one.Toward, Stands: one.Stands,
			Priority: one.Priority, Why: one.Why,
		}
		last, ok := at(one.Node)
		switch {
		case one.Node == me:
			continue
		case !tells(one, seen):
			t.Why = "it does not follow"
		case !ok || last.Token != seen.Token:
		case last.Position >= base:
			t.Position = &mine
		default:
			t.Position = &last.Position
		}
		told = append(told, t)
	}
	return told
}

// leaveUnreachable ends the run if others do not reach the primary, and one of them may take over. It has been ready for so long.
func (t *term) leaveUnreachable(well time.Duration) {
	v := t.v
	if v.copy == nil {
		return
	}
	v.copy.mu.Lock()
	now := v.copy.outside
	v.copy.mu.Unlock()
	if now.token != v.mem.lastTerm.token || now.who == "" || now.to+now.unfit == "" {
		return
	}
	why := v.stays(now, well)
	switch {
	case why == "":
		t.run.programs.End(unreachable{now})
	case time.Since(v.copy.saidSeen) > saySeenAgain:
		v.copy.saidSeen = time.Now()
		v.log.Warn("other nodes do not reach the primary, and it stays here", "seen", now.said(), "why", now.why, "stays", why)
	}
}

// stays is why a primary that others do not reach stays here; "": it does not.
func (v *Service) stays(now outside, well time.Duration) (why string) {
	until := v.mem.preference.relapses.until
	switch {
	case v.inbox.intents.control().Paused:
		return "the service is paused"
	case now.to == "":
		return now.unfit
	case time.Now().Before(until) && well < v.conf.Restart.Within: // else it would go round
		return "it was given up here, and is not again before " + until.UTC().Format(time.RFC3339)
	}
	return ""
}

// untaken reports that no other node takes over what this one has given up: others did not reach it, and their copies have turned out not
// to be fit, or the copy here has the newest data.
func (v *Service) untaken() bool {
	if v.copy == nil {
		return false
	}
	verdict, patience := v.copy.judged(), nobodyTakes
	switch {
	case verdict.vacancy == 0 || verdict.Why == "":
		return false
	case v.state.Cause == role.NotReachable:
	case verdict.Best != v.node.Self.Node, v.state.BackOffUntilProof: // what could not be fenced is not fenced again and again
		return false
	default:
		patience = max(patience, v.growing())
	}
	return time.Since(v.copy.since(verdict.vacancy)) > patience
}

// watchVacancy fires now and then while untaken may come true, until stop is called.
func (c *copyHere) watchVacancy() (now <-chan time.Time, stop func()) {
	if c == nil {
		return nil, func() {}
	}
	ticker := time.NewTicker(nobodyTakes / 2)
	return ticker.C, ticker.Stop
}

// watchLeader remembers how far the primary elsewhere says that its data goes, until ctx ends.
func (c *copyHere) watchLeader(ctx context.Context, all *election.Copies, every func() time.Duration) {
	for wait.For(ctx, every()) {
		of := c.Leader()
		if of.Node == "" {
			continue
		}
		at, ok, err := all.At(ctx, of.Node)
		if err == nil && ok && at.Token == of.Token { // else the next one finds it out
			c.NoteLead(of, at.Position, at.Time)
		}
	}
}

// seenPrimary is what this node tells of the primary that it follows.
func (c *copyHere) seenPrimary() *election.SeenPrimary {
	s, ok := c.Sees()
	if !ok {
		return nil
	}
	return &election.SeenPrimary{Token: s.Of.Token, Well: s.Well, Why: s.Why}
}

// sameSeen compares what was told.
func sameSeen(a, b *election.SeenPrimary) bool {
	return a == b || a != nil && b != nil && fmt.Sprint(*a) == fmt.Sprint(*b)
}
