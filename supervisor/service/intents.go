package service

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/wait"
)

// intents are the operators' orders for a service, and the nodes that are preferred to this one by their own word.
type intents struct {
	node string // this one
	log  hclog.Logger
	news news
	copy chan struct{} // capacity 1: there may be another order for this node's copy

	done   carriedOut // for the goroutine that serves, as the next two
	reload reload
	leaves int64 // the order that drains this node, once it is under way

	mu     sync.Mutex // guards the fields below
	now    election.Intents
	known  bool // in this session
	erased bool // all znodes of the service were deleted by hand: it needs another candidate
}

// carriedOut is the newest orders that were carried out, by their ids.
type carriedOut struct {
	Switchover string `json:"switchover,omitempty"`
	Restart    string `json:"restart,omitempty"`
	Reload     string `json:"reload,omitempty"`
	Forced     int64  `json:"forced,omitempty"` // the order that drains this node, if this activation was forced here in spite of it
}

// reload is what the newest reload has led to.
type reload struct {
	observed bool   // it is not known yet
	failed   string // what went wrong
}

// watch keeps them current. It ends with the service's znodes.
func (n *intents) watch(ctx context.Context, cand *election.Candidate) {
	for ctx.Err() == nil {
		err := cand.Control.Watch(ctx, n.learn)
		if errors.Is(err, election.ErrDeleted) {
			n.erase()
			return
		}
		if err != nil && ctx.Err() == nil {
			n.log.Error("cannot read the operators' orders, trying again", "error", err)
			wait.For(ctx, time.Second)
		}
	}
}

func (n *intents) learn(w election.Intents) {
	n.mu.Lock()
	was := n.now
	n.now, n.known = w, true
	n.mu.Unlock()
	n.tell(was, w)
	n.news.wake()
	wait.Poke(n.copy)
}

// tell logs what operators have ordered since, and who: as whoever wrote it to ZooKeeper says.
func (n *intents) tell(was, now election.Intents) {
	c, confirmed := now.Control, was.Control.Confirmed
	switch {
	case c.Stopped && !was.Control.Stopped:
		n.log.Info("stopped: no node is to be active", "by", c.By, "why", c.Why)
	case c.Paused && !was.Control.Paused:
		n.log.Info("paused: automatic takeovers are off", "by", c.By, "why", c.Why)
	case !c.Paused && was.Control.Paused:
		n.log.Info("automatic takeovers are on again", "by", c.By)
	}
	switch d := now.Drained; {
	case d != nil && (was.Drained == nil || was.Drained.ID != d.ID):
		n.log.Info("this node is drained", "by", d.By, "why", d.Why)
	case d == nil && was.Drained != nil:
		n.log.Info("this node is no longer drained", "by", now.Undrained)
	}
	if f := c.Confirmed; f != nil && (confirmed == nil || !confirmed.At.Equal(f.At)) {
		n.log.Info("an operator confirmed that the program of a node is dead", "node", f.Node, "token", f.Token, "by", f.By)
	}
}

func (n *intents) erase() {
	n.mu.Lock()
	n.erased = true
	n.mu.Unlock()
	n.news.wake()
}

// newSession notes that another session has read nothing yet.
func (n *intents) newSession() {
	n.mu.Lock()
	n.known, n.erased = false, false
	n.mu.Unlock()
	n.news.wake()
}

// read returns the known orders, and whether this session has read them.
func (n *intents) read() (now election.Intents, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now, n.known
}

// control is the content of the control znode.
func (n *intents) control() election.Control {
	now, _ := n.read()
	return now.Control
}

// isErased reports whether all znodes of the service were deleted since this candidate was made.
func (n *intents) isErased() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.erased
}

// order is an operator's order for an activation.
type order uint8

const (
	orderNone order = iota
	orderSwitchover
	orderStop
	orderRestart
	orderReload
)

// ordered returns the operators' order for the activation with this token, unless that is under way; from now on it counts as under way.
func (n *intents) ordered(token int64) order {
	now, _ := n.read()
	c := now.Control
	if c.Stopped {
		return orderStop
	}
	if o := c.Switchover; o != nil && o.Token == token && !c.Paused {
		if o.ID != n.done.Switchover {
			n.done.Switchover = o.ID
			n.log.Info("an operator orders a switchover", "token", token, "to", cmp.Or(o.To, "the first node that can"), "by", o.By)
		}
		return orderSwitchover
	}
	if d := now.Drained; d != nil && !c.Paused && d.ID != n.done.Forced {
		if n.leaves != d.ID {
			n.leaves = d.ID
			n.log.Info("another node is to take the service", "token", token, "why", d.Words())
		}
		return orderSwitchover
	}
	if o := c.Restart; o != nil && o.Token == token && o.ID != n.done.Restart {
		n.done.Restart = o.ID
		n.log.Info("an operator orders a restart", "token", token, "by", o.By)
		return orderRestart
	}
	if o := c.Reload; o != nil && o.Token == token && o.ID != n.done.Reload {
		n.done.Reload, n.reload = o.ID, reload{}
		n.log.Info("an operator orders a reload", "token", token, "by", o.By)
		return orderReload
	}
	return orderNone
}

// forced reports whether an operator wants this node to be active, fit or not. An order counts once, even if it is still there later.
func (n *intents) forced() bool { return n.forces(n.control()) }

func (n *intents) forces(c election.Control) bool {
	return c.Forces(n.node) && c.Switchover.ID != n.done.Switchover
}

// chosen is the node that an operator wants to be active, or to be promoted again; "": none. forced: whatever data its copy has, for as
// long as the command waits: it takes the order back then, unless it was killed.
func (n *intents) chosen(now time.Time) (node string, forced bool) {
	switch c := n.control(); {
	case c.Switchover != nil:
		return c.Switchover.To, c.Switchover.Force && now.Before(c.Switchover.Deadline)
	case c.Restart != nil:
		return c.Restart.Node, false
	}
	return "", false
}

// giver is the node that an operator has give the service to any other one; "": none does.
func (n *intents) giver() string {
	if s := n.control().Switchover; s != nil && s.To == "" {
		return s.From
	}
	return ""
}

// forcesCopy reports whether an operator, and who, has this node's copy promoted whatever data it has.
func (n *intents) forcesCopy(now time.Time) (by string, yes bool) {
	s := n.control().Switchover
	if s == nil || s.To != n.node || !s.Force || !now.Before(s.Deadline) {
		return "", false
	}
	return s.By, true
}

// follow notes that this node follows an order to become active.
func (n *intents) follow() {
	now, _ := n.read()
	n.done.Forced = 0
	s := now.Control.Switchover
	if s == nil || s.To != n.node {
		return
	}
	n.done.Switchover = s.ID
	if s.Force && now.Drained != nil {
		n.done.Forced = now.Drained.ID
	}
}

// confirmed is a proof with the operator who has confirmed the death, if one has since the newest activation.
func (n *intents) confirmed(by string) string {
	c := n.control().Confirmed
	if c == nil || c.By == "" || by != fencing.ByConfirmed && by != string(election.NoBreadcrumb) {
		return by
	}
	return string(election.ConfirmedBy(c.By))
}

// late reports whether there is an order for an earlier activation, as it was written when this one began, or a pause to restore: no other
// node would see to it.
func (n *intents) late(token int64) bool {
	before := func(o *election.Order) bool { return o != nil && o.Token < token }
	c := n.control()
	return c.Restores() || before(c.Restart) || before(c.Reload) || c.Switchover != nil && before(&c.Switchover.Order) ||
		c.Confirmed != nil && c.Confirmed.Token < token
}

// answer returns a function that removes the orders that the activation with this token has carried out, or that were for a previous
// one: the commands that gave them wait for that. It restores the pause that a stop has interrupted. nil: there is no order.
func (n *intents) answer(token int64) func(*election.Control) (changed bool) {
	c := n.control()
	if c.Switchover == nil && c.Restart == nil && c.Reload == nil && c.Confirmed == nil && c.Before == nil {
		return nil
	}
	carriedOut, reload := n.done, n.reload
	done := func(o *election.Order, id string) bool { return o != nil && (o.Token < token || o.ID == id) }
	return func(c *election.Control) (changed bool) {
		if c.Switchover != nil && c.Switchover.Token < token {
			c.Switchover, changed = nil, true
		}
		if c.Confirmed != nil && c.Confirmed.Token < token {
			c.Confirmed, changed = nil, true
		}
		if done(c.Restart, carriedOut.Restart) {
			c.Restart, changed = nil, true
		}
		switch ours := c.Reload != nil && c.Reload.ID == carriedOut.Reload && c.Reload.Token >= token; {
		case !done(c.Reload, carriedOut.Reload):
		case ours && (reload.observed || c.Reload.Failed != ""):
		case ours && reload.failed != "":
			c.Reload.Failed, changed = reload.failed, true
		default:
			c.Reload, changed = nil, true
		}
		if c.Restores() {
			p := c.Before
			c.Paused, c.By, c.Why, c.Since, c.Before, changed = true, p.By, p.Why, p.Since, nil, true
		}
		return changed
	}
}
