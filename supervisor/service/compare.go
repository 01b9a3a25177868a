package service

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/copies"
	"understudy/supervisor/replica"
)

const (
	compareSoon  = 50 * time.Millisecond // while nobody holds the lock: others are about to tell
	compareLater = 2 * time.Second
	lookAgain    = time.Minute // watches tell of what matters

	askFor    = 500 * time.Millisecond // all nodes, from the moment at which the lock is seen free
	askChosen = 5 * time.Second        // the node that an operator has chosen
)

// comparing is one candidacy's view of all copies.
type comparing struct {
	v    *Service
	all  *election.Copies
	told election.CopyReport
	once bool // something was told

	failed string // why the last look at the copies failed

	fails string // why the copy here does, as the service knows it

	question int64 // the newest, and since when
	since    time.Time

	beats time.Duration  // between two heartbeats of another node, at most
	base  replica.At     // where the primary was, and when, since others do not reach it
	next  copies.Verdict // whose copy would be promoted then
}

// compareCopies tells the other nodes of this node's copy, has it follow
// whoever is promoted, and compares the copies while nobody is, until ctx ends.
func (v *Service) compareCopies(ctx context.Context, cand *election.Candidate, beats time.Duration) {
	c := &comparing{v: v, all: cand.Copies(), beats: beats}
	pause := compareSoon
	defer func() {
		if _, promoted := v.copy.said(); promoted != 0 && handing(ctx) { // others follow it on
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdPatience)
		defer cancel()
		if err := c.all.Untell(ctx); err != nil {
			v.log.Debug("what was told of this node's copy ends with the session", "error", err)
		}
	}()
	for ctx.Err() == nil {
		seen, err := c.all.Read(ctx)
		if err == nil {
			pause = c.turn(ctx, seen, pause)
			err = c.wait(ctx, seen, pause)
		}
		if err != nil && ctx.Err() == nil {
			c.tellFailure(err)
			select {
			case <-time.After(compareLater):
			case <-ctx.Done():
			}
		}
	}
}

// tellFailure logs why no copy can be promoted, once for each reason. A session that is over has its own line.
func (c *comparing) tellFailure(err error) {
	if c.failed == err.Error() || errors.Is(err, election.ErrExpired) {
		return
	}
	c.failed = err.Error()
	c.v.log.Warn("the copies cannot be compared, and none is promoted until then", "error", err)
}

// wait returns when another node has told something that counts, this node's copy has changed, or after a pause.
func (c *comparing) wait(ctx context.Context, seen election.CopiesSeen, pause time.Duration) error {
	waiting, enough := context.WithCancel(ctx)
	defer enough()
	go func() {
		select {
		case <-c.v.copy.changed:
			enough()
		case <-waiting.Done():
		}
	}()
	err := c.all.Wait(waiting, seen, pause)
	if waiting.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// turn acts on what is seen, and returns how long to wait for a change.
func (c *comparing) turn(ctx context.Context, seen election.CopiesSeen, pause time.Duration) time.Duration {
	v, here := c.v, c.v.copy
	conf := v.Given()
	me := v.node.Self.Node
	seen = believed(seen, me, conf.Replicated.Others)
	here.tellDoubts(seen.Doubts)
	if mine, ok := seen.Of(me); !ok || mine.Address != c.told.Address || mine.Promoted != c.told.Promoted {
		c.once = false // another client has written or deleted it
	}
	stands, token := here.said()
	about := election.CopyReport{
		Address: conf.copyAddress(v.node.Self.Host), Stands: stands, Priority: conf.Priority,
		Doubt:    conf.Replicated.DoubtfulPositions(len(seen.Known)),
		Promoted: token, Role: string(here.Shown().Role),
	}
	about.Asks = here.asks()
	question := seen.Question()
	switch {
	case seen.Holder == me && about.Asks == seen.Token: // this node's own question
		question, about.Stands = -about.Asks, true
	case seen.Holder == me:
		question = 0
	}
	if about.Asks != 0 && max(seen.Token, seen.Vacancy) > about.Asks {
		here.answer(about.Asks, copies.Verdict{}) // the lock is lost
	}
	if seen.Vacancy == 0 && here.noteVerdict(verdictOf{}) {
		v.inbox.news.wake()
	}
	if question == 0 {
		return c.whileHeld(ctx, conf, seen, about, pause)
	}
	return c.whileAsked(ctx, conf, seen, about, question, pause)
}

// whileHeld has the copy follow whoever holds the lock, and tells the others how it does so.
func (c *comparing) whileHeld(
	ctx context.Context, conf Conf, seen election.CopiesSeen, about election.CopyReport, pause time.Duration,
) time.Duration {
	here, me := c.v.copy, c.v.node.Self.Node
	active := replica.Active{}
	if one, ok := seen.Of(seen.Holder); ok && one.Promoted == seen.Token && seen.Holder != me {
		active = replica.Active{Node: one.Node, Host: one.Host, Address: one.Address, Era: seen.Era, Token: one.Promoted}
	}
	shown := here.Shown()
	c.learn(active)
	about.Era, about.Followed, about.Toward, about.Source = shown.Era, shown.Followed, shown.Toward, election.Source(shown.Source)
	about.Why, about.Sees = cmp.Or(shown.Why, shown.Ill), here.seenPrimary()
	if why := seen.Doubts[seen.Holder]; why != "" {
		about.Why = seen.Holder + " is not followed: " + why
	}
	c.tell(ctx, about)
	switch {
	case seen.Holder != me && active.Node == "": // it is about to be promoted
		return c.later(pause)
	case seen.Holder == me && about.Promoted == seen.Token:
		here.noteFollowers(seen)
		return c.seenByOthers(ctx, conf, seen)
	}
	return lookAgain
}

// whileAsked tells the others how far the data of the copy goes, and judges whose copy may be promoted.
func (c *comparing) whileAsked(
	ctx context.Context, conf Conf, seen election.CopiesSeen, about election.CopyReport, question int64, pause time.Duration,
) time.Duration {
	v, here := c.v, c.v.copy
	c.learn(replica.Active{})
	told := here.Tell(ctx)
	about.Vacancy, about.Position, about.Why = question, told.Position, told.Why
	about.Era, about.Followed, about.Toward, about.Source = told.Era, told.Followed, told.Toward, election.Source(told.Source)
	about.Empty, about.Same, about.Had, about.Led, about.Saw = told.Empty, told.Same, told.Had, told.Led, told.Saw
	c.tell(ctx, about)
	about.Node = v.node.Self.Node
	now := verdictOf{vacancy: question, claims: seen.Claims, beside: seen.Crumb}
	if !c.awaits(seen, question) {
		now.Verdict = c.verdict(conf, seen, question, about)
	}
	switch {
	case seen.Vacancy == 0 && now.Verdict != copies.Verdict{}:
		here.answer(about.Asks, now.Verdict)
	case seen.Vacancy != 0 && here.noteVerdict(now):
		v.inbox.news.wake()
		return compareSoon
	}
	return c.later(pause)
}

// learn tells the copy here who is promoted, and the service whether that one cannot be followed.
func (c *comparing) learn(active replica.Active) {
	c.v.copy.Learn(active)
	if now := c.v.copy.Fails(); now != c.fails {
		c.fails = now
		c.v.inbox.news.wake()
	}
}

// later is the pause after one after which nothing was new.
func (c *comparing) later(pause time.Duration) time.Duration {
	if pause > compareLater { // of another time
		pause = 0
	}
	return min(max(2*pause, compareSoon), compareLater)
}

// tell tells the others, if they do not know it.
func (c *comparing) tell(ctx context.Context, about election.CopyReport) {
	same := about.Position == nil && c.told.Position == nil ||
		about.Position != nil && c.told.Position != nil && *about.Position == *c.told.Position
	rest, told := about, c.told
	rest.Position, told.Position, rest.Sees, told.Sees = nil, nil, nil, nil
	if c.once && same && rest == told && sameSeen(about.Sees, c.told.Sees) {
		return
	}
	err := c.all.Tell(ctx, about)
	if c.once = err == nil; c.once {
		c.told = about
	} else if ctx.Err() == nil {
		c.v.log.Debug("cannot tell the other nodes of this node's copy", "error", err)
	}
}

// awaits reports whether others may still be about to tell: what they have counts, as long as nobody has to wait for it.
func (c *comparing) awaits(seen election.CopiesSeen, question int64) bool {
	if c.question != question {
		c.question, c.since = question, time.Now()
	}
	to, forced := c.v.inbox.intents.chosen(time.Now())
	gives := c.v.inbox.intents.giver() == c.v.node.Self.Node
	for _, one := range seen.Copies {
		limit, told := askFor, one.Vacancy == question
		switch {
		case told && one.Node == to && !forced: // its program may have been restarted for it
			limit, told = askChosen, one.Position != nil || one.Same
		case one.Node == to:
			limit = askChosen
		case gives: // as it leaves a plain service's lock to others
			limit = graceForAny
		}
		if one.Node != c.v.node.Self.Node && !told && time.Since(c.since) < limit {
			return true
		}
	}
	return false
}

// verdict compares what was told to this question.
func (c *comparing) verdict(conf Conf, seen election.CopiesSeen, question int64, mine election.CopyReport) copies.Verdict {
	to, forced := c.v.inbox.intents.chosen(time.Now())
	giver := c.v.inbox.intents.giver()
	all := []election.CopyReport{mine}
	for _, one := range seen.Copies {
		if one.Node != mine.Node {
			all = append(all, one)
		}
	}
	var told []copies.Told
	for _, one := range all {
		t := copies.Told{
			Node: one.Node, Era: one.Era, Followed: one.Followed, Toward: one.Toward, Position: one.Position, Why: one.Why,
			Stands: one.Stands, Priority: one.Priority, Chosen: one.Node == to, Gives: one.Node == giver,
		}
		t.Tied, t.Led, t.Empty, t.Saw = seen.Promoted.Is(one.Source), one.Led, one.Empty, one.Saw
		if one.Same {
			least := max(one.Had, 1) // 0 is a copy without data
			t.Position, t.Same = &least, true
		}
		t.Forced = t.Chosen && forced
		if one.Vacancy != question { // what it said was of another time
			t.Position, t.Same, t.Empty, t.Why = nil, false, false, "it has not reported its position yet"
		}
		told = append(told, t)
	}
	listed := slices.Clone(seen.Known)
	if seen.Promoted.Token == 0 {
		listed = slices.AppendSeq(listed, maps.Keys(conf.Replicated.Others))
		slices.Sort(listed)
	}
	for _, node := range slices.Compact(listed) {
		if !slices.ContainsFunc(all, func(one election.CopyReport) bool { return one.Node == node }) {
			told = append(told, copies.Told{Node: node, Why: cmp.Or(seen.Doubts[node], control.NothingReported)})
		}
	}
	return rulesOf(conf, seen).Judge(told)
}

func rulesOf(conf Conf, seen election.CopiesSeen) copies.Rules {
	r, promoted := conf.Replicated, seen.Promoted.Token
	var live []string // an operator has had the others forgotten
	for _, node := range seen.Promoted.Live {
		if slices.Contains(seen.Known, node) {
			live = append(live, node)
		}
	}
	return copies.Rules{
		Live: live,
		Era:  seen.Era, Promoted: promoted, From: copies.Need(r.PositionsFrom, len(seen.Known), promoted), MaxLag: uint64(r.MaxLag),
	}
}
