package guard

import (
	"errors"
	"fmt"
	"iter"
	"time"
)

// Hopeless is how long a guardian goes on after its supervisor's end: SIGKILL will not end a process that it has not ended by then.
const Hopeless = 10 * time.Minute

// Box is a process or container that can be killed whole. No method waits.
type Box interface {
	// Order orders the death of everything in the box, without a look.
	Order()
	// Look is one step of killing: it strikes live processes. othersDead: the other boxes of the tree are gone, so a container that held
	// them goes too. Dead is a proof, and stays one.
	Look(othersDead bool) Look
	// Waits reports whether its orders may wait for the kernel: then those to other boxes come first.
	Waits() bool
	Close()
}

// Look is the result of a look at a box.
type Look struct {
	Dead  bool
	Moves bool          // there was more work than fits into one look
	Again time.Duration // until when the next look can wait
}

// Hands do what a Guardian decides. No method waits: results of slow work come with a later step.
type Hands interface {
	// Open holds the box that m names, so that no other can take its place. nil without an error: it is gone, and need not be held.
	Open(m *Message) (Box, error)
	// Take takes over the descriptor that came with OpTwin or OpWatchdog, in place of the previous.
	Take(m *Message) error
	Tell(m *Message)
	// Hold gets ready to undo the effects that m describes, so that undoing them needs as little as possible.
	Hold(m *Message) (Effects, error)
	// Undo undoes a dead tree's effects in the background. Its Undone has to follow.
	Undo(tree uint64, e Effects)
	// Close closes a session in the background. Its Closed has to follow.
	Close(c Closing)
	// Feed shows the watchdog a sign of life.
	Feed()
	// LetGo closes the watchdog. Without a farewell it goes on counting.
	LetGo(farewell bool)
}

// Closing is an order to close a session.
type Closing struct {
	Epoch    uint64
	Ticket   []byte
	Releases [][]byte      // of settled trees without effects
	Undone   [][]byte      // of settled trees whose effects are undone
	Left     [][]byte      // of dead trees with effects that are known to be left
	DiedAt   time.Duration // of the last of these trees
	Exactly  bool          // they all lived until the lease ended; else one may have been dead before
	All      bool          // every tree of the lease is settled; else the session itself is left to expire
}

// Closed is the result of a closing.
type Closed struct {
	Closing
	Err error
}

// Events are the input of a step besides messages.
type Events struct {
	Closed   []Closed
	Undone   []Undone
	TwinGone bool
	Orphaned bool // the supervisor is gone, and all its messages were heard before
}

// Config is the first message to a guardian.
type Config struct {
	Index int           // the second one leaves the closing of sessions to the first for a moment
	Grace time.Duration // how long it serves without its twin
}

// Guardian is one guardian: the leases and trees that it watches. A step is Hear for each waiting message, and then Turn: messages that
// were sent in time but read late count, and so do a supervisor's last ones before it died.
type Guardian struct {
	cfg      Config
	hands    Hands
	leases   leases
	alone    time.Duration // since when the twin is gone; 0: it lives, or there has been none
	first    bool          // it gives its twin no head start
	told     bool          // it knows everything that its twin knows
	blind    bool          // it could not take in a whole tree
	orphaned bool
	deeds    Deeds     // since it is orphaned
	watchdog *watchdog // nil: there is none, or none is needed
}

// NewGuardian makes a guardian that knows nothing yet.
func NewGuardian(cfg Config, hands Hands) *Guardian {
	return &Guardian{cfg: cfg, hands: hands, first: cfg.Index == 0}
}

// lease is the lease of some trees.
type lease struct {
	number      uint64
	trees       []*tree // in numerical order
	ticket      []byte
	deadline    time.Duration // 0: none has arrived
	alreadyOver bool          // it was over when this guardian first heard of it, and ends once all its trees are known
	finished    bool          // the supervisor does not need it any more
	ended       bool
	endedAt     time.Duration
	why         string        // it has ended
	closeAt     time.Duration // not before this
	told        int           // how much the newest closing knows
	busy        bool          // a closing is under way
	closed      bool          // closed with every tree settled, or given up
	refused     error         // why the newest closing failed
}

// tree is a tree to kill when the lease ends.
type tree struct {
	number uint64
	lease  *lease
	znodes []byte // its lock and breadcrumb, for the closing of the session
	name   string // for the log
	boxes  []held // in the order of arrival: the container first
	dead   bool
	diedAt time.Duration
	lives  int  // processes that have joined it and are not proved dead
	struck bool // there were some when the lease ended, and their supervisor did not prove their death
	tries  int
	armed  bool          // the watchdog is for it
	after  time.Duration // the lease's end: until then its death has to be proved
	treeEffects
}

// held is a box, and the supervisor's name for it.
type held struct {
	Box
	ref  Ref
	gone bool // proved dead
}

// settled reports whether no process of the tree is alive, and its effects are undone.
func (t *tree) settled() bool { return t.dead && !t.pending() }

var (
	errUnknownTree  = errors.New("no such tree")
	errUnknownOrder = errors.New("unknown order")
	errKnownEpoch   = errors.New("the epoch has begun before")
	errKnownTree    = errors.New("the tree is known already")
	errNoBox        = errors.New("no box is named")
	errNoWatchdog   = errors.New("no watchdog came along")
)

// Causes that end a lease.
const (
	ranOut         = "the lease ran out"
	supervisorGone = "the supervisor is gone"
	twinGone       = "the twin is gone and was not replaced"
	leftAlive      = "finished with trees left"
)

// Hear carries out a message, and answers it.
func (g *Guardian) Hear(now time.Duration, m *Message) {
	if err := g.obey(now, m); err != nil {
		g.blind = g.blind || (m.Op == OpTree || m.Op == OpJoin || m.Op == OpEffects) && m.Seq == 0
		g.hands.Tell(refuse(m, err))
	} else if m.Seq > 0 {
		g.hands.Tell(&Message{Op: OpAck, Seq: m.Seq})
	}
}

func (g *Guardian) obey(now time.Duration, m *Message) error {
	switch m.Op {
	case OpPing:
		g.told = g.told || m.OK && !g.blind
		return nil
	case OpTwin:
		if err := g.hands.Take(m); err != nil {
			return err
		}
		g.alone, g.told = 0, true
		return nil
	case OpWatchdog:
		return g.keep(m)
	case OpUnwatch:
		g.letGo()
		return nil
	}
	l := g.leases.lease(m.Epoch)
	if m.Op == OpBegin {
		if l != nil {
			return errKnownEpoch
		}
		g.leases.begin(&lease{number: m.Epoch, ticket: m.Ticket, deadline: m.Deadline, alreadyOver: m.OK})
		return nil
	}
	if l == nil {
		return ErrUnknownEpoch
	}
	// P3: the deadline counts, not when its timer is noticed. A later deadline that was sent before this one passed, and
	// is read only now since this process was stopped, is as good as one that was read in time: it says until when, not for
	// how long.
	if m.Op != OpExtend && l.over(now) {
		g.end(now, l, ranOut)
	}
	switch m.Op {
	case OpExtend:
		if l.ended {
			return ErrLeaseEnded
		}
		l.deadline = max(l.deadline, m.Deadline)
		return nil
	case OpEnd:
		g.end(now, l, m.Why)
		return nil
	case OpFinish:
		l.finished = true
		if !l.ended && len(l.trees) > 0 {
			g.end(now, l, leftAlive) // P2: forget no live tree
		} else if !l.ended {
			g.leases.forget(l)
		}
		return nil
	case OpTree:
		return g.addTree(l, m)
	}
	t := g.leases.tree(m.Tree)
	if t == nil || t.lease != l && m.Op != OpMove {
		return errUnknownTree
	}
	switch m.Op {
	case OpMove:
		return g.move(now, t, l, m.Release)
	case OpJoin:
		return g.join(t, m)
	case OpShed:
		t.shed(m.Box)
		return nil
	case OpDrop:
		t.drop(now)
		return nil
	case OpEffects:
		return g.holdEffects(t, m)
	case OpSettled:
		t.settle(m.OK)
		return nil
	case OpArm:
		if l.ended {
			return ErrLeaseEnded
		}
		t.armed, t.after = true, m.Grace
		return nil
	}
	return fmt.Errorf("%w %q", errUnknownOrder, m.Op)
}

// Turn does everything that is due, and returns when to look again; zero means at the next event. over: this guardian may end.
func (g *Guardian) Turn(now time.Duration, e Events) (next time.Duration, over bool) {
	for _, c := range e.Closed {
		g.heardClosed(c)
	}
	for _, u := range e.Undone {
		g.heardUndone(now, u)
	}
	if e.TwinGone && g.alone == 0 {
		g.alone, g.first = now, true // the twin that had the head start is gone
	}
	if e.Orphaned && !g.orphaned {
		g.orphaned = true
		g.endAll(now, supervisorGone)
	}
	if g.alone > 0 && !g.orphaned {
		if alone := g.alone + g.cfg.Grace; now >= alone {
			g.endAll(now, twinGone)
		} else {
			next = alone
		}
	}
	for _, l := range g.leases { // P3: no first order waits for a look at another lease's trees
		if l.over(now) {
			g.end(now, l, ranOut)
		}
	}
	for _, l := range g.leases {
		switch {
		case l.ended:
			next = sooner(next, sooner(l.kill(now), sooner(g.undo(now, l), g.close(now, l))))
			if hopeless := l.endedAt + Hopeless; g.orphaned && now < hopeless {
				next = sooner(next, hopeless)
			}
		case !l.alreadyOver:
			next = sooner(next, l.deadline)
		}
	}
	for i := len(g.leases) - 1; i >= 0; i-- {
		if l := g.leases[i]; l.ended && g.done(now, l) {
			if g.orphaned {
				g.deeds.add(l)
			}
			g.leases.forget(l)
		}
	}
	if g.orphaned && len(g.leases) == 0 {
		g.letGo()
		return 0, true
	}
	return sooner(next, g.feed(now)), false
}

// sooner is the earlier of two times; zero is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// over reports whether a deadline has passed that this guardian has not acted upon.
func (l *lease) over(now time.Duration) bool {
	return !l.ended && !l.alreadyOver && l.deadline > 0 && now >= l.deadline
}

// Dying returns the boxes whose deaths the guardian waits for.
func (g *Guardian) Dying() iter.Seq[Box] {
	return func(yield func(Box) bool) {
		for _, l := range g.leases {
			for _, t := range l.trees {
				if l.ended && !t.dead && !t.alive(yield) {
					return
				}
			}
		}
	}
}
