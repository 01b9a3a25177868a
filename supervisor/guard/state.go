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
)

// State is all that both guardians have to know: leases, trees, and the descriptors that they share with their supervisor.
type State struct {
	to       teller
	leases   []*Lease // in numerical order
	trees    uint64   // the last number given to a tree
	watchdog *Message // the device that they feed
}

// teller passes changes on to the guardians.
type teller interface {
	broadcast(m *Message)
	ask(now time.Duration, m *Message) (seq uint64)
	news() // a goroutine may wait for this change
	Changed() <-chan struct{}
}

// Lease is one lease: the trees that live under it end with it.
type Lease struct {
	Number   uint64
	Ticket   []byte
	Deadline time.Duration // 0: none has arrived
	Cause    error         // why it is over; nil while it is not
	trees    []*Tree       // in numerical order
	state    *State
	done     chan struct{} // closed when it is over
}

// Trees is the epoch's trees, but for those that have ended with proof.
func (l *Lease) Trees() []*Tree {
	return slices.DeleteFunc(slices.Clone(l.trees), func(t *Tree) bool { return t.dead })
}

// Running names the trees in which something runs, as far as this process knows.
func (s *State) Running(number uint64) (names []string) {
	if l := s.find(number); l != nil {
		for _, t := range l.trees {
			if len(t.members) > 0 {
				names = append(names, t.Spec.Name)
			}
		}
	}
	return names
}

// Tree is a tree in a supervisor's State.
type Tree struct {
	Number   uint64
	Spec     TreeSpec
	lease    *Lease
	members  []HeldProcess
	armed    bool          // the watchdog guards it
	after    time.Duration // the lease's end: the death must be proved by then
	starting int           // forks under way
	found    int           // so many processes were found outside of its container
	killing  bool          // no fork may begin
	turn     chan struct{} // held by the one Kill that is under way
	ended    bool
	dead     bool
	effects  []byte // how to undo what its processes may have done; nil: nothing
}

// TreeSpec describes a tree to its guardians.
type TreeSpec struct {
	Release []byte
	Name    string      // for the log
	Ref     func() *Ref // of its container; nil: it has none, or no longer
	Along   any
	Of      any // the caller's own value
}

// HeldProcess is a process of a tree that guardians hold individually.
type HeldProcess struct {
	Ref   Ref
	Along any
}

func (s *State) find(number uint64) *Lease {
	i, there := slices.BinarySearchFunc(s.leases, number, func(l *Lease, n uint64) int { return cmp.Compare(l.Number, n) })
	if !there {
		return nil
	}
	return s.leases[i]
}

// Leases returns all that have begun and are not finished.
func (s *State) Leases() []*Lease { return slices.Clone(s.leases) }

// Lease finds one of them.
func (s *State) Lease(number uint64) (*Lease, error) {
	if l := s.find(number); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("epoch %d: %w", number, ErrUnknownEpoch)
}

// Begin opens a new epoch.
func (s *State) Begin(number uint64, ticket []byte) error {
	i, there := slices.BinarySearchFunc(s.leases, number, func(l *Lease, n uint64) int { return cmp.Compare(l.Number, n) })
	if there {
		return errKnownEpoch
	}
	l := &Lease{state: s, Number: number, Ticket: ticket, done: make(chan struct{})}
	s.leases = slices.Insert(s.leases, i, l)
	s.to.broadcast(l.begin())
	return nil
}

func (l *Lease) begin() *Message { return &Message{Op: OpBegin, Epoch: l.Number, Ticket: l.Ticket} }

// live finds an epoch that is not over.
func (s *State) live(now time.Duration, number uint64) (*Lease, error) {
	l, err := s.Lease(number)
	if err == nil {
		err = l.alive(now)
	}
	return l, err
}

func (l *Lease) alive(now time.Duration) error {
	// P3: a lease that ran out is over even before anybody has noticed, and is not revived.
	if l.Cause == nil && l.Deadline > 0 && now >= l.Deadline {
		l.over(ErrLeaseEnded)
	}
	return l.Cause
}

// leased is alive, and also requires that a lease has arrived.
func (l *Lease) leased(now time.Duration) error {
	if err := l.alive(now); err != nil {
		return err
	}
	if l.Deadline == 0 {
		return ErrNoLease
	}
	return nil
}

func (l *Lease) over(cause error) {
	if l.Cause == nil {
		l.Cause = cause
		close(l.done)
		l.state.to.news()
	}
}

// end notes that a guardian has ended an epoch.
func (s *State) end(number uint64) {
	if l := s.find(number); l != nil {
		l.over(ErrLeaseEnded)
	}
}

// Extend moves an epoch's deadline; an earlier one than it had changes nothing.
func (s *State) Extend(now time.Duration, number uint64, deadline time.Duration) error {
	l, err := s.live(now, number)
	if err != nil || deadline <= l.Deadline {
		return err
	}
	l.Deadline = deadline
	s.to.broadcast(&Message{Op: OpExtend, Epoch: number, Deadline: deadline})
	return nil
}

// Finish forgets an epoch whose trees have all ended; guardians then do not close its session.
func (s *State) Finish(number uint64) error {
	l, err := s.Lease(number)
	if err != nil {
		return err
	}
	if len(l.trees) > 0 {
		return fmt.Errorf("%d trees have not ended", len(l.trees))
	}
	l.over(ErrLeaseEnded)
	s.leases = slices.DeleteFunc(s.leases, func(other *Lease) bool { return other == l })
	s.to.broadcast(&Message{Op: OpFinish, Epoch: number})
	return nil
}

// replay returns all messages for a new guardian.
func (s *State) replay() (all []*Message) {
	if s.watchdog != nil {
		fresh := *s.watchdog
		fresh.Seq = 0
		all = append(all, &fresh)
	}
	for _, l := range s.leases {
		begin := l.begin()
		if errors.Is(l.Cause, ErrGuardiansLost) {
			begin.Ticket = nil // this process is alive, keeps the session, and releases its locks by itself
		}
		if l.Cause != nil {
			begin.Deadline, begin.OK = l.Deadline, true
		}
		all = append(all, begin)
		if l.Deadline > 0 && l.Cause == nil {
			all = append(all, &Message{Op: OpExtend, Epoch: l.Number, Deadline: l.Deadline})
		}
		for _, t := range l.trees {
			all = append(all, t.registration())
			for _, m := range t.members {
				all = append(all, t.message(OpJoin, m))
			}
			if t.armed {
				all = append(all, t.arming())
			}
			if t.effects != nil {
				all = append(all, t.effectsMessage())
			}
			if t.dead {
				all = append(all, t.dropping())
			}
		}
		if l.Cause != nil {
			all = append(all, &Message{Op: OpEnd, Epoch: l.Number, Why: l.Cause.Error()})
		}
	}
	return all
}

// Over is closed when an epoch is over; Cause then says why.
func (s *State) Over(number uint64) <-chan struct{} {
	if l := s.find(number); l != nil {
		return l.done
	}
	return closed
}

// Cause says why an epoch is over; nil while it is not.
func (s *State) Cause(number uint64) error {
	l, err := s.Lease(number)
	if err != nil {
		return err
	}
	return l.Cause
}
