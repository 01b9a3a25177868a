package guard

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Hopeless is how long after its supervisor a guardian goes on: what SIGKILL has not ended by then, it does not end.
const Hopeless = 10 * time.Minute

// Body is something alive that can be killed whole. No method waits.
type Body interface {
	// Order orders the death of everything in it, and looks at nothing.
	Order()
	// Look is one turn of killing: it strikes what lives. rest: what else there was of the tree is gone, so a container that held it
	// goes too. Dead is a proof, and stays one.
	Look(rest bool) Sight
	// Waits tells whether its orders may wait for the kernel: those to other bodies come first.
	Waits() bool
	Close()
}

// Sight is what a look at a body has shown.
type Sight struct {
	Dead  bool
	Moves bool          // there was more to do than fits into one look
	Again time.Duration // until when the next look can wait
}

// Hands do what a Ward decides. Nothing waits: what takes long is told with a later turn.
type Hands interface {
	// Open holds the body that m names, so that it is no other one. nil without an error: it is gone, and nothing has to be held.
	Open(m *Message) (Body, error)
	// Take takes over what came along with OpTwin, OpShare or OpWatchdog, in place of the former.
	Take(m *Message) error
	Tell(m *Message)
	// Close closes a session beside the turns. Its Closed has to follow.
	Close(c Closing)
	// Feed shows the watchdog a sign of life.
	Feed()
	// LetGo closes the watchdog. Without a farewell it goes on counting.
	LetGo(farewell bool)
}

// Closing is a session to be closed. Releases are of trees that are settled.
type Closing struct {
	Epoch    uint64
	Ticket   []byte
	Releases [][]byte
	All      bool // every tree of the lease is among them; else the session itself is left to expire
}

// Closed is how a closing went.
type Closed struct {
	Closing
	Err error
}

// Events are what a turn is told besides messages.
type Events struct {
	Closed   []Closed
	TwinGone bool
	Orphaned bool // the supervisor is gone, and everything that it had said was heard before
}

// Config is what a guardian is told first.
type Config struct {
	Index int           // the second one leaves the closing of sessions to the first for a moment
	Grace time.Duration // how long it watches alone
}

// Ward is one guardian: the leases and trees that it watches. A turn is Hear for each message that is there, and then Turn: what
// was said in time and is read late counts, and so does what a supervisor said before it died.
type Ward struct {
	cfg      Config
	hands    Hands
	leases   []*lease      // in numerical order
	alone    time.Duration // since when the twin is gone; 0: it is there, or there has been none
	first    bool          // it leaves nobody a head start
	told     bool          // it knows everything that its twin knows
	blind    bool          // it could not take in all of a tree
	orphaned bool
	watchdog *watchdog // nil: there is none, or none that is needed
}

// NewWard is a guardian that knows of nothing yet.
func NewWard(cfg Config, hands Hands) *Ward {
	return &Ward{cfg: cfg, hands: hands, first: cfg.Index == 0}
}

// lease is what trees live under.
type lease struct {
	number      uint64
	trees       []*tree // in numerical order
	ticket      []byte
	deadline    time.Duration // 0: none has arrived
	alreadyOver bool          // it was over when this guardian first heard of it, and ends once all its trees are known
	finished    bool          // the supervisor has nothing to do with it any more
	ended       bool
	endedAt     time.Duration
	closeAt     time.Duration // not before this
	told        int           // how many deaths the newest closing was told of
	busy        bool          // a closing is under way
	closed      bool          // closed with every tree settled
}

// tree is what is to be killed when the lease ends.
type tree struct {
	number  uint64
	lease   *lease
	release []byte
	mark    string
	bodies  []held // in the order of their coming: the container first
	dead    bool
	tries   int
	armed   bool          // the watchdog is for it
	after   time.Duration // the lease's end: until then its death has to be proved
}

// held is a body, and what the supervisor calls it.
type held struct {
	Body
	ref  Ref
	gone bool // proved dead
}

// settled tells whether nothing of the tree is alive, and nothing is left of what it did.
func (t *tree) settled() bool { return t.dead }

var (
	errUnknownTree = errors.New("no such tree")
	errKnownEpoch  = errors.New("the epoch has begun before")
	errKnownTree   = errors.New("the tree is known already")
	errNoBody      = errors.New("no body is named")
	errNoWatchdog  = errors.New("no watchdog came along")
)

// Why a lease ends.
const (
	ranOut         = "the lease ran out"
	supervisorGone = "the supervisor is gone"
	twinGone       = "the twin is gone and was not replaced"
	leftAlive      = "finished with trees left"
)

// Hear does what a message says, and answers it.
func (w *Ward) Hear(now time.Duration, m *Message) {
	if err := w.obey(now, m); err != nil {
		w.blind = w.blind || (m.Op == OpTree || m.Op == OpBody) && m.Seq == 0
		w.hands.Tell(refuse(m, err))
	} else if m.Seq > 0 {
		w.hands.Tell(&Message{Op: OpAck, Seq: m.Seq})
	}
}

func (w *Ward) obey(now time.Duration, m *Message) error {
	switch m.Op {
	case OpPing:
		w.told = w.told || m.OK && !w.blind
		return nil
	case OpShare:
		return w.hands.Take(m)
	case OpTwin:
		if err := w.hands.Take(m); err != nil {
			return err
		}
		w.alone, w.told = 0, true
		return nil
	case OpWatchdog:
		return w.keep(m)
	case OpUnwatch:
		w.letGo()
		return nil
	}
	l := w.lease(m.Epoch)
	if m.Op == OpBegin {
		if l != nil {
			return errKnownEpoch
		}
		w.begin(&lease{number: m.Epoch, ticket: m.Ticket, deadline: m.Deadline, alreadyOver: m.OK})
		return nil
	}
	if l == nil {
		return ErrUnknownEpoch
	}
	// P3: the deadline counts, not whether its timer has been seen. A later deadline that was sent before this one passed, and
	// is read only now since this process was stopped, is as good as one that was read in time: it says until when, not for
	// how long.
	if m.Op != OpExtend && m.Op != OpShorten && l.over(now) {
		w.end(now, l, ranOut)
	}
	switch m.Op {
	case OpExtend, OpShorten:
		return l.move(m)
	case OpEnd:
		w.end(now, l, m.Why)
		return nil
	case OpFinish:
		l.finished = true
		if !l.ended && len(l.trees) > 0 {
			w.end(now, l, leftAlive) // P2: nothing is forgotten alive
		} else if !l.ended {
			w.forget(l)
		}
		return nil
	case OpTree:
		return w.plant(l, m)
	}
	t := w.tree(m.Tree)
	if t == nil || t.lease != l {
		return errUnknownTree
	}
	switch m.Op {
	case OpBody:
		return w.join(t, m)
	case OpShed:
		t.shed(m.Body)
		return nil
	case OpDrop:
		t.drop()
		return nil
	case OpArm:
		if l.ended {
			return ErrLeaseEnded
		}
		t.armed, t.after = true, m.Grace
		return nil
	}
	return fmt.Errorf("unknown order %q", m.Op)
}

// Turn does everything that is due and says when to look again, zero being at the next event; over: this guardian may leave.
func (w *Ward) Turn(now time.Duration, e Events) (next time.Duration, over bool) {
	for _, c := range e.Closed {
		w.heardClosed(c)
	}
	if e.TwinGone && w.alone == 0 {
		w.alone, w.first = now, true // whoever was to close first is gone
	}
	if e.Orphaned && !w.orphaned {
		w.orphaned = true
		w.endAll(now, supervisorGone)
	}
	if w.alone > 0 && !w.orphaned {
		if alone := w.alone + w.cfg.Grace; now >= alone {
			w.endAll(now, twinGone)
		} else {
			next = alone
		}
	}
	for _, l := range w.leases { // P3: no first order waits for what is looked at of another lease
		if l.over(now) {
			w.end(now, l, ranOut)
		}
	}
	for _, l := range w.leases {
		switch {
		case l.ended:
			next = sooner(next, sooner(l.kill(now), w.close(now, l)))
			if hopeless := l.endedAt + Hopeless; w.orphaned && now < hopeless {
				next = sooner(next, hopeless)
			}
		case !l.alreadyOver:
			next = sooner(next, l.deadline)
		}
	}
	for i := len(w.leases) - 1; i >= 0; i-- {
		if l := w.leases[i]; l.ended && w.done(now, l) {
			w.forget(l)
		}
	}
	if w.orphaned && len(w.leases) == 0 {
		w.letGo()
		return 0, true
	}
	return sooner(next, w.feed(now)), false
}

// sooner is the earlier of two times; zero is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// over tells whether a deadline has passed that nobody has acted upon.
func (l *lease) over(now time.Duration) bool {
	return !l.ended && !l.alreadyOver && l.deadline > 0 && now >= l.deadline
}

// Dying is the bodies whose deaths are waited for.
func (w *Ward) Dying() iter.Seq[Body] {
	return func(yield func(Body) bool) {
		for _, l := range w.leases {
			for _, t := range l.trees {
				if l.ended && !t.dead && !t.alive(yield) {
					return
				}
			}
		}
	}
}

// Settled tells whether this guardian itself has seen a tree settled, under a lease that has ended. P2: whatever comes late to that
// tree is refused, and never passes its gate.
func (w *Ward) Settled(mark string) bool {
	for _, l := range w.leases {
		if i := slices.IndexFunc(l.trees, func(t *tree) bool { return mark != "" && t.mark == mark }); i >= 0 {
			return l.ended && l.trees[i].settled()
		}
	}
	return false
}
