package service

import (
	"cmp"
	"context"
	"time"

	"understudy/supervisor/copies"
	"understudy/supervisor/service/role"
	"understudy/supervisor/wait"
)

// Copies are compared while nobody holds the lock. A primary may have run on after that, where its session was ended, or its lock deleted,
// by others, or its machine stood still: then a copy may have got data of it since it reported its position. So whoever had to fence one,
// or compared beside its breadcrumb, has all copies compared once more, now that nobody writes, before its own is promoted.

const askLongest = 2 * askChosen

// again is that comparison.
type again struct {
	token   int64               // of the term that asks for it; 0: none does
	verdict chan copies.Verdict // capacity 1
	why     string              // nobody is the best one yet
}

// asks says for which term the copies are compared once more; 0: for none.
func (c *copyHere) asks() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.again.token
}

func (c *copyHere) ask(a again) {
	c.mu.Lock()
	c.again = a
	c.mu.Unlock()
	wait.Poke(c.changed)
}

// answer gives a verdict to the term that has asked for it; the zero value: it has lost its lock. It waits for one that names a node.
func (c *copyHere) answer(token int64, v copies.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.again.token != token:
	case v.Why != "":
		c.again.why = v.Why
	default:
		select {
		case c.again.verdict <- v:
		default:
		}
	}
}

// unsure is why no answer names a node.
func (c *copyHere) unsure() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.again.why, "the copies were not compared")
}

// compareAgain reports Behind if another copy is newer, or may be.
func (p *promotion) compareAgain(ctx context.Context, t *term) role.Event {
	v := t.v
	if !v.copy.compared() || !p.mustCompareAgain {
		return role.Event{Kind: role.Armed}
	}
	asked := again{token: t.claim.Token, verdict: make(chan copies.Verdict, 1)}
	v.copy.ask(asked)
	defer v.copy.ask(again{})
	select {
	case verdict := <-asked.verdict:
		switch {
		case verdict == copies.Verdict{}:
			return role.Event{Kind: role.LockLost}
		case verdict.Node == v.node.Self.Node:
			return role.Event{Kind: role.Armed}
		}
		v.log.Warn("this node's copy is not promoted: another one is newer now", "newest", verdict.Node)
		return role.Event{Kind: role.Behind}
	case <-time.After(askLongest):
		v.log.Warn("this node's copy is not promoted: another one may be newer now", "why", v.copy.unsure(), "after", askLongest)
		return role.Event{Kind: role.Behind}
	case <-ctx.Done():
		return t.over(ctx)
	}
}
