package guard

import "time"

// Handover is what the next image of a supervisor needs to know about its guardians, which do not notice the change.
type Handover struct {
	Seq, Trees uint64
	Acked      [2]uint64
	Leases     []HandoverLease
	Timeout    time.Duration
	Device     any // nil: none
}

// HandoverLease is one of the leases in a Handover.
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

// HandOver describes everything, if both guardians are well, and there are these leases alone, with so many trees each and no start or
// kill under way. Otherwise the error is ErrBusy, or why a lease is over.
func (g *Guardians) HandOver(now time.Duration, trees map[uint64]int) (l Handover, err error) {
	if len(g.State.leases) != len(trees) {
		return l, ErrBusy
	}
	l = Handover{Seq: g.Questions.last, Trees: g.State.trees}
	for _, e := range g.State.leases {
		if expected, known := trees[e.Number]; !known || len(e.trees) != expected {
			return l, ErrBusy
		}
		one, err := e.handOver(now)
		if err != nil {
			return l, err
		}
		l.Leases = append(l.Leases, one)
	}
	for i, s := range g.slots {
		if s.post != serving {
			return l, ErrBusy
		}
		l.Acked[i] = s.acked
	}
	if w := g.State.watchdog; w != nil {
		l.Timeout, l.Device = w.Grace, w.Along
	}
	return l, nil
}

func (l *Lease) handOver(now time.Duration) (HandoverLease, error) {
	one := HandoverLease{Number: l.Number, Ticket: l.Ticket, Deadline: l.Deadline}
	if err := l.leased(now); err != nil {
		return one, err
	}
	for _, t := range l.trees {
		if t.starting > 0 || t.killing || len(t.turn) > 0 || t.ended || t.dead {
			return one, ErrBusy
		}
		one.Trees = append(one.Trees,
			HandoverTree{Number: t.Number, Spec: t.Spec, Armed: t.armed, After: t.after, Members: t.members, Effects: t.effects})
	}
	return one, nil
}

// Adopt makes Guardians of a previous image's guardians. Numbers are those at the places.
func Adopt(now time.Duration, hands SupervisorHands, l Handover) (p *Guardians, numbers [2]uint64) {
	p = NewGuardians(hands)
	numbers = p.Present(now, l.Acked)
	p.Questions.last, p.State.trees = l.Seq, l.Trees
	for _, one := range l.Leases {
		e := &Lease{state: p.State, Number: one.Number, Ticket: one.Ticket, Deadline: one.Deadline, done: make(chan struct{})}
		for _, t := range one.Trees {
			e.trees = append(e.trees, &Tree{
				Number: t.Number, Spec: t.Spec, lease: e, members: t.Members, armed: t.Armed, after: t.After,
				turn: make(chan struct{}, 1), effects: t.Effects,
			})
		}
		p.State.leases = append(p.State.leases, e)
	}
	if l.Device != nil {
		p.State.watchdog = &Message{Op: OpWatchdog, Grace: l.Timeout, Along: l.Device}
	}
	return p, numbers
}
