package service

import (
	"context"
	"errors"
	"time"

	"understudy/election"
)

// What operators order of this node's copy while it follows. The role machine has no part in it: neither the lock nor the lease changes.

var errLateOrder = errors.New("by this node's clock the command that ordered it has given up")

// obeyed is an order that is carried out, over all sessions, or was.
type obeyed struct {
	id     string
	cancel context.CancelFunc
	over   chan struct{} // closed when it is
	failed string        // what went wrong
}

// obey carries out what is ordered of the copy, and answers it, until ctx ends.
func (c *copyHere) obey(ctx context.Context, n *intents, amend func(context.Context, func(*election.Control) bool) error) {
	answered := ""
	for {
		now, known := n.read()
		o := now.Control.Copy
		if o != nil && (o.Node != n.node || o.Failed != "") {
			o = nil
		}
		var over chan struct{}
		switch {
		case !known:
		case o == nil:
			c.obeys(nil, n) // it was taken back
		default:
			over = c.obeys(o, n).over
			if o.ID == answered {
				over = nil
			}
		}
		select {
		case <-over:
			done := *c.obeyed
			err := amend(ctx, func(now *election.Control) bool { return answerCopy(now, done.id, done.failed) })
			if err != nil && ctx.Err() == nil {
				n.log.Warn("cannot remove an operator's order", "error", err)
			}
			answered = done.id
		case <-n.copy:
		case <-ctx.Done():
			return
		}
	}
}

// obeys is an order that is under way from now on, once; a previous one is not waited for any more.
func (c *copyHere) obeys(o *election.CopyOrder, n *intents) *obeyed {
	if was := c.obeyed; was != nil {
		if o != nil && o.ID == was.id {
			return was
		}
		was.cancel()
		c.obeyed = nil
	}
	if o == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(c.lasts)
	now := &obeyed{id: o.ID, cancel: cancel, over: make(chan struct{})}
	c.obeyed = now
	n.log.Info("an operator orders something of this node's copy", "order", o.Do, "by", o.By)
	c.keeps.Go(func() {
		defer close(now.over)
		defer cancel()
		err := errLateOrder
		if time.Now().Before(o.Deadline) { // else its command may have been killed long ago
			err = c.Obey(ctx, o.Do, o.Token)
		}
		if err != nil {
			now.failed = election.Line(err.Error())
		}
	})
	return now
}

// answerCopy removes an order that is carried out, or tells whoever gave it what went wrong. It reports whether that is a change.
func answerCopy(now *election.Control, id, failed string) bool {
	switch o := now.Copy; {
	case o == nil || o.ID != id || o.Failed != "":
		return false
	case failed == "":
		now.Copy = nil
	default:
		o.Failed = failed
	}
	return true
}
