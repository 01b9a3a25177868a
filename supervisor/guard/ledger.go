package guard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors that a caller may branch on.
var (
	ErrTreeEnded = errors.New("the tree has ended or is being killed")
	ErrBusy      = errors.New("an action is under way that must end first")
	// ErrMisfit says that a watchdog would reset the machine too late for a lease that has become shorter.
	ErrMisfit = errors.New("the watchdog's timeout does not fit the shorter lease")
)

// Fit says what a lease requires of a watchdog.
type Fit struct {
	Timeout time.Duration
	After   time.Duration // the end of the lease: until then a death has to be proved
}

// Ledger is all that both guardians have to know: leases, trees, and the descriptors that they share with their supervisor.
type Ledger struct {
	to       teller
	epochs   []*Epoch // in numerical order
	trees    uint64   // the last number given to a tree
	shared   *Message // the listener at which they answer in the supervisor's place
	watchdog *Message // the device that they feed
}

// teller passes changes on to the guardians.
type teller interface {
	broadcast(m *Message)
	ask(now time.Duration, m *Message) (seq uint64)
	news() // a goroutine may wait for this change
	Changed() <-chan struct{}
}

// Epoch is one lease: the trees that live under it end with it.
type Epoch struct {
	Number   uint64
	Ticket   []byte
	Deadline time.Duration // 0: none has arrived
	Cause    error         // why it is over; nil while it is not
	fit      *Fit          // set when the lease became shorter; nil: it did not
	trees    []*Entry      // in numerical order
	ledger   *Ledger
	done     chan struct{} // closed when it is over
}

// Trees is the epoch's trees, but for those that have ended with proof.
func (e *Epoch) Trees() []*Entry {
	return slices.DeleteFunc(slices.Clone(e.trees), func(t *Entry) bool { return t.dead })
}

// Running names the trees in which something runs, as far as this process knows.
func (l *Ledger) Running(number uint64) (names []string) {
	if e := l.epoch(number); e != nil {
		for _, t := range e.trees {
			if len(t.members) > 0 {
				names = append(names, t.Plant.Name)
			}
		}
	}
	return names
}

// Entry is a tree in the ledger.
type Entry struct {
	Number   uint64
	Plant    Plant
	epoch    *Epoch
	members  []Member
	armed    bool          // the watchdog guards it
	after    time.Duration // the lease's end: the death must be proved by then
	starting int           // forks under way
	killing  bool          // no fork may begin
	turn     chan struct{} // held by the one Kill that is under way
	ended    bool
	dead     bool
	effects  []byte // how to undo what its processes may have done; nil: nothing
}

// Plant describes a tree to its guardians.
type Plant struct {
	Release []byte
	Mark    string
	Name    string      // for the log
	Ref     func() *Ref // of its container; nil: it has none, or no longer
	Along   any
	Of      any // the caller's own value
}

// Member is a process of a tree that guardians hold individually.
type Member struct {
	Ref   Ref
	Along any
}

func (l *Ledger) epoch(number uint64) *Epoch {
	i, there := slices.BinarySearchFunc(l.epochs, number, func(e *Epoch, n uint64) int { return cmp.Compare(e.Number, n) })
	if !there {
		return nil
	}
	return l.epochs[i]
}

// Epochs returns all that have begun and are not finished.
func (l *Ledger) Epochs() []*Epoch { return slices.Clone(l.epochs) }

// Epoch finds one of them.
func (l *Ledger) Epoch(number uint64) (*Epoch, error) {
	if e := l.epoch(number); e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("epoch %d: %w", number, ErrUnknownEpoch)
}

// Begin opens a new epoch.
func (l *Ledger) Begin(number uint64, ticket []byte) error {
	i, there := slices.BinarySearchFunc(l.epochs, number, func(e *Epoch, n uint64) int { return cmp.Compare(e.Number, n) })
	if there {
		return errKnownEpoch
	}
	e := &Epoch{ledger: l, Number: number, Ticket: ticket, done: make(chan struct{})}
	l.epochs = slices.Insert(l.epochs, i, e)
	l.to.broadcast(e.begin())
	return nil
}

func (e *Epoch) begin() *Message { return &Message{Op: OpBegin, Epoch: e.Number, Ticket: e.Ticket} }

// live finds an epoch that is not over.
func (l *Ledger) live(now time.Duration, number uint64) (*Epoch, error) {
	e, err := l.Epoch(number)
	if err == nil {
		err = e.alive(now)
	}
	return e, err
}

func (e *Epoch) alive(now time.Duration) error {
	// P3: a lease that ran out is over even before anybody has noticed, and is not revived.
	if e.Cause == nil && e.Deadline > 0 && now >= e.Deadline {
		e.over(ErrLeaseEnded)
	}
	return e.Cause
}

// leased is alive, and also requires that a lease has arrived.
func (e *Epoch) leased(now time.Duration) error {
	if err := e.alive(now); err != nil {
		return err
	}
	if e.Deadline == 0 {
		return ErrNoLease
	}
	return nil
}

func (e *Epoch) over(cause error) {
	if e.Cause == nil {
		e.Cause = cause
		close(e.done)
		e.ledger.to.news()
	}
}

// end notes that a guardian has ended an epoch.
func (l *Ledger) end(number uint64) {
	if e := l.epoch(number); e != nil {
		e.over(ErrLeaseEnded)
	}
}

// Extend moves an epoch's deadline; an earlier one than it had changes nothing.
func (l *Ledger) Extend(now time.Duration, number uint64, deadline time.Duration) error {
	e, err := l.live(now, number)
	if err != nil || deadline <= e.Deadline {
		return err
	}
	e.Deadline = deadline
	l.to.broadcast(&Message{Op: OpExtend, Epoch: number, Deadline: deadline})
	return nil
}

// Shorten moves an epoch's deadline to an earlier point. After ErrMisfit it is so early that the trees are dead, and the watchdog is
// disarmed, before that acts: nobody feeds it any more.
func (l *Ledger) Shorten(now time.Duration, number uint64, deadline time.Duration, fit Fit) (seq uint64, err error) {
	e, err := l.live(now, number)
	if err != nil {
		return 0, err
	}
	if l.Fed() > fit.Timeout {
		deadline, err = min(deadline, now+l.Fed()/2), ErrMisfit
	}
	if e.Deadline > 0 {
		e.Deadline = min(e.Deadline, deadline)
	}
	e.fit = &fit
	for _, t := range e.trees {
		t.after = min(t.after, fit.After)
	}
	return l.to.ask(now, &Message{Op: OpShorten, Epoch: number, Deadline: deadline, Grace: fit.After}), err
}

// Finish forgets an epoch whose trees have all ended; guardians then do not close its session.
func (l *Ledger) Finish(number uint64) error {
	e, err := l.Epoch(number)
	if err != nil {
		return err
	}
	if len(e.trees) > 0 {
		return fmt.Errorf("%d trees have not ended", len(e.trees))
	}
	e.over(ErrLeaseEnded)
	l.epochs = slices.DeleteFunc(l.epochs, func(other *Epoch) bool { return other == e })
	l.to.broadcast(&Message{Op: OpFinish, Epoch: number})
	return nil
}

// Share makes the guardians answer at a listener. Only the newest one counts.
func (l *Ledger) Share(note []byte, listener any) {
	l.shared = &Message{Op: OpShare, Ticket: note, Along: listener}
	l.to.broadcast(l.shared)
}

// Shared is the newest shared listener; nil: none.
func (l *Ledger) Shared() (note []byte, listener any) {
	if l.shared == nil {
		return nil, nil
	}
	return l.shared.Ticket, l.shared.Along
}

// replay returns all messages for a new guardian.
func (l *Ledger) replay() (all []*Message) {
	for _, m := range []*Message{l.shared, l.watchdog} {
		if m != nil {
			fresh := *m
			fresh.Seq = 0
			all = append(all, &fresh)
		}
	}
	for _, e := range l.epochs {
		begin := e.begin()
		if errors.Is(e.Cause, ErrGuardiansLost) {
			begin.Ticket = nil // this process is alive, keeps the session, and releases its locks by itself
		}
		if e.Cause != nil {
			begin.Deadline, begin.OK = e.Deadline, true
		}
		all = append(all, begin)
		if e.Deadline > 0 && e.Cause == nil {
			all = append(all, &Message{Op: OpExtend, Epoch: e.Number, Deadline: e.Deadline})
		}
		for _, t := range e.trees {
			all = append(all, t.registration())
			for _, m := range t.members {
				all = append(all, t.message(OpBody, m))
			}
			if t.armed {
				all = append(all, t.arming())
			}
			if t.effects != nil {
				all = append(all, t.owing())
			}
			if t.dead {
				all = append(all, t.dropping())
			}
		}
		if e.Cause != nil {
			all = append(all, &Message{Op: OpEnd, Epoch: e.Number, Why: e.Cause.Error()})
		}
	}
	return all
}

// Over is closed when an epoch is over; Cause then says why.
func (l *Ledger) Over(number uint64) <-chan struct{} {
	if e := l.epoch(number); e != nil {
		return e.done
	}
	done := make(chan struct{})
	close(done)
	return done
}

// Cause says why an epoch is over; nil while it is not.
func (l *Ledger) Cause(number uint64) error {
	e, err := l.Epoch(number)
	if err != nil {
		return err
	}
	return e.Cause
}
