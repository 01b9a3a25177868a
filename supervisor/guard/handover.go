package guard

import "time"

// Handover is what the next image of a supervisor needs to know about its guardians, which do not notice the change.
type Handover struct {
	Seq, Trees uint64
	Acked      [2]uint64
	Lease      HandoverLease
	Timeout    time.Duration
	Device     any // nil: none
}

// HandoverLease is the lease in a Handover.
type HandoverLease struct {
	Number   uint64
	Ticket   []byte
	Deadline time.Duration
	Trees    []HandoverTree
}

// HandoverTree is one of the lease's trees.
type HandoverTree struct {
	Number  uint64
	Spec    TreeSpec
	Armed   bool
	After   time.Duration
	Members []HeldProcess
	Effects []byte
}

// HandOver describes everything, if both guardians are well, and the given epoch is the only one, with so many trees and no start or kill
// under way. Otherwise the error is ErrBusy, or why the epoch is over.
func (g *Guardians) HandOver(now time.Duration, number uint64, trees int) (l Handover, err error) {
	e := g.State.find(number)
	if e == nil || len(g.State.leases) > 1 || len(e.trees) != trees {
		return l, ErrBusy
	}
	if err := e.leased(now); err != nil {
		return l, err
	}
	l = Handover{Seq: g.Questions.last, Trees: g.State.trees, Lease: HandoverLease{Number: number, Ticket: e.Ticket, Deadline: e.Deadline}}
	for i, s := range g.slots {
		if s.post != serving {
			return l, ErrBusy
		}
		l.Acked[i] = s.acked
	}
	for _, t := range e.trees {
		if t.starting > 0 || t.killing || len(t.turn) > 0 || t.ended || t.dead {
			return l, ErrBusy
		}
		l.Lease.Trees = append(l.Lease.Trees,
			HandoverTree{Number: t.Number, Spec: t.Spec, Armed: t.armed, After: t.after, Members: t.members, Effects: t.effects})
	}
	if w := g.State.watchdog; w != nil {
		l.Timeout, l.Device = w.Grace, w.Along
	}
	return l, nil
}

// Adopt makes Guardians of a previous image's guardians. Numbers are those at the places.
func Adopt(now time.Duration, hands SupervisorHands, l Handover) (p *Guardians, numbers [2]uint64) {
	p = NewGuardians(hands)
	numbers = p.Present(now, l.Acked)
	p.Questions.last, p.State.trees = l.Seq, l.Trees
	e := &Lease{state: p.State, Number: l.Lease.Number, Ticket: l.Lease.Ticket, Deadline: l.Lease.Deadline, done: make(chan struct{})}
	for _, t := range l.Lease.Trees {
		e.trees = append(e.trees, &Tree{
			Number: t.Number, Spec: t.Spec, lease: e, members: t.Members, armed: t.Armed, after: t.After,
			turn: make(chan struct{}, 1), effects: t.Effects,
		})
	}
	p.State.leases = []*Lease{e}
	if l.Device != nil {
		p.State.watchdog = &Message{Op: OpWatchdog, Grace: l.Timeout, Along: l.Device}
	}
	return p, numbers
}
