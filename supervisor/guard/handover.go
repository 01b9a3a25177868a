package guard

import "time"

// Legacy is what the next image of a supervisor needs to know about its guardians, which do not notice the change.
type Legacy struct {
	Seq, Trees uint64
	Acked      [2]uint64
	Epoch      LegacyEpoch
	Note       []byte // Listener and Device may be nil
	Listener   any
	Timeout    time.Duration
	Device     any
}

// LegacyEpoch is the lease in a Legacy.
type LegacyEpoch struct {
	Number   uint64
	Ticket   []byte
	Deadline time.Duration
	Trees    []LegacyTree
}

// LegacyTree is one of the lease's trees.
type LegacyTree struct {
	Number  uint64
	Plant   Plant
	Armed   bool
	After   time.Duration
	Members []Member
	Effects []byte
}

// HandOver describes everything, if both guardians are well, and the given epoch is the only one, with so many trees and no start or kill
// under way. Otherwise the error is ErrBusy, or why the epoch is over.
func (p *Pair) HandOver(now time.Duration, number uint64, trees int) (l Legacy, err error) {
	e := p.Ledger.epoch(number)
	if e == nil || len(p.Ledger.epochs) > 1 || len(e.trees) != trees {
		return l, ErrBusy
	}
	if err := e.leased(now); err != nil {
		return l, err
	}
	l = Legacy{Seq: p.Questions.last, Trees: p.Ledger.trees, Epoch: LegacyEpoch{Number: number, Ticket: e.Ticket, Deadline: e.Deadline}}
	for i, s := range p.slots {
		if s.post != serving {
			return l, ErrBusy
		}
		l.Acked[i] = s.acked
	}
	for _, t := range e.trees {
		if t.starting > 0 || t.killing || len(t.turn) > 0 || t.ended || t.dead {
			return l, ErrBusy
		}
		l.Epoch.Trees = append(l.Epoch.Trees, LegacyTree{Number: t.Number, Plant: t.Plant, Armed: t.armed, After: t.after, Members: t.members, Effects: t.effects})
	}
	l.Note, l.Listener = p.Ledger.Shared()
	if w := p.Ledger.watchdog; w != nil {
		l.Timeout, l.Device = w.Grace, w.Along
	}
	return l, nil
}

// Adopt makes a Pair of a former image's guardians. Numbers are those at the places.
func Adopt(now time.Duration, hands PairHands, l Legacy) (p *Pair, numbers [2]uint64) {
	p = NewPair(hands)
	numbers = p.Present(now, l.Acked)
	p.Questions.last, p.Ledger.trees = l.Seq, l.Trees
	e := &Epoch{ledger: p.Ledger, Number: l.Epoch.Number, Ticket: l.Epoch.Ticket, Deadline: l.Epoch.Deadline, done: make(chan struct{})}
	for _, t := range l.Epoch.Trees {
		e.trees = append(e.trees, &Entry{
			Number: t.Number, Plant: t.Plant, epoch: e, members: t.Members, armed: t.Armed, after: t.After, turn: make(chan struct{}, 1), effects: t.Effects,
		})
	}
	p.Ledger.epochs = []*Epoch{e}
	if l.Listener != nil {
		p.Ledger.shared = &Message{Op: OpShare, Ticket: l.Note, Along: l.Listener}
	}
	if l.Device != nil {
		p.Ledger.watchdog = &Message{Op: OpWatchdog, Grace: l.Timeout, Along: l.Device}
	}
	return p, numbers
}
