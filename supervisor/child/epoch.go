package child

import (
	"fmt"
	"slices"
	"time"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// Begin opens a new epoch. If this process dies, a guardian hands ticket to the session closer.
func (g *Guard) Begin(number uint64, ticket []byte) error {
	defer g.guardians.lock()()
	if len(ticket) > wire.MaxPacket/2 {
		return fmt.Errorf("begin epoch %d: ticket: %w", number, wire.ErrPacketTooLarge)
	}
	if err := g.guardians.pair.Ledger.Begin(number, slices.Clone(ticket)); err != nil {
		return fmt.Errorf("begin epoch %d: %w", number, err)
	}
	return nil
}

// Extend moves the epoch's deadline, a point on the clock of Now; an earlier one than it had changes nothing. It does not
// wait for anything. ErrLeaseEnded: the epoch is over and its trees are being killed.
func (g *Guard) Extend(number uint64, deadline time.Duration) error {
	defer g.guardians.lock()()
	if err := g.guardians.pair.Ledger.Extend(wire.Now(), number, deadline); err != nil {
		return fmt.Errorf("extend epoch %d: %w", number, err)
	}
	return nil
}

// Finish forgets the epoch once all its trees have ended; then guardians do not close its session.
func (g *Guard) Finish(number uint64) error {
	defer g.guardians.lock()()
	if err := g.guardians.pair.Ledger.Finish(number); err != nil {
		return fmt.Errorf("finish epoch %d: %w", number, err)
	}
	return nil
}

// Over is closed when the epoch is over, for any cause; Cause then says why: ErrLeaseEnded, ErrGuardiansLost or
// ErrStopped. Its trees are being killed, but the caller still has to end them.
func (g *Guard) Over(number uint64) <-chan struct{} {
	defer g.guardians.look()()
	return g.guardians.pair.Ledger.Over(number)
}

// Cause says why the epoch is over; nil while it is not.
func (g *Guard) Cause(number uint64) error {
	defer g.guardians.look()()
	return g.guardians.pair.Ledger.Cause(number)
}

// treesOf returns an epoch's trees.
func treesOf(e *guard.Epoch) (all []*Tree) {
	for _, t := range e.Trees() {
		all = append(all, t.Plant.Of.(*Tree))
	}
	return all
}
