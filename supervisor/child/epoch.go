package child

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy/supervisor/guard"
)

// epoch is one lease: the trees that live under it end with it. Guarded by Guard.mu.
type epoch struct {
	number   uint64
	ticket   []byte
	deadline time.Duration // 0: none has arrived
	fits     *Watchdog     // what a watchdog must be like since the lease became shorter; nil: it has not
	trees    map[uint64]*Tree
	cause    error         // why it is over; nil while it is not
	done     chan struct{} // closed when it is over
}

// Begin opens a new epoch. If this process dies, a guardian hands ticket to the session closer.
func (g *Guard) Begin(number uint64, ticket []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.epochs[number] != nil {
		return fmt.Errorf("begin epoch %d: it has begun before", number)
	}
	if len(ticket) > maxPacket/2 {
		return fmt.Errorf("begin epoch %d: ticket: %w", number, errPacketTooLarge)
	}
	e := &epoch{number: number, ticket: slices.Clone(ticket), trees: make(map[uint64]*Tree), done: make(chan struct{})}
	g.epochs[number] = e
	g.broadcast(e.begin())
	return nil
}

// Extend moves the epoch's deadline, a point on the clock of Now; an earlier one than it had changes nothing. It does not
// wait for anything. ErrLeaseEnded: the epoch is over and its trees are being killed.
func (g *Guard) Extend(number uint64, deadline time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.epochs[number]
	if e == nil {
		return fmt.Errorf("extend epoch %d: %w", number, guard.ErrUnknownEpoch)
	}
	if err := g.live(e); err != nil {
		return fmt.Errorf("extend epoch %d: %w", number, err)
	}
	if deadline <= e.deadline {
		return nil
	}
	e.deadline = deadline
	g.broadcast(&guard.Message{Op: guard.OpExtend, Epoch: number, Deadline: deadline})
	return nil
}

// Finish forgets the epoch once all its trees have ended; nothing is closed any more.
func (g *Guard) Finish(number uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.epochs[number]
	if e == nil {
		return fmt.Errorf("finish epoch %d: %w", number, guard.ErrUnknownEpoch)
	}
	if len(e.trees) > 0 {
		return fmt.Errorf("finish epoch %d: %d trees have not ended", number, len(e.trees))
	}
	g.over(number, ErrLeaseEnded)
	delete(g.epochs, number)
	g.broadcast(&guard.Message{Op: guard.OpFinish, Epoch: number})
	return nil
}

// Over is closed when the epoch is over, however that came; Cause then says why: ErrLeaseEnded, ErrGuardiansLost or
// ErrStopped. Its trees are being killed, and are to be ended by the caller all the same.
func (g *Guard) Over(number uint64) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.epochs[number]; e != nil {
		return e.done
	}
	done := make(chan struct{})
	close(done)
	return done
}

// Cause says why the epoch is over; nil while it is not.
func (g *Guard) Cause(number uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.epochs[number]; e != nil {
		return e.cause
	}
	return guard.ErrUnknownEpoch
}

// live says whether anything may still be done under the epoch. The caller holds mu.
func (g *Guard) live(e *epoch) error {
	// P3: a lease that ran out is over even if nobody has noticed yet, and is not revived.
	if e.cause == nil && e.deadline > 0 && Now() >= e.deadline {
		g.over(e.number, ErrLeaseEnded)
	}
	return e.cause
}

// over marks the epoch. The caller holds mu.
func (g *Guard) over(number uint64, cause error) {
	if e := g.epochs[number]; e != nil && e.cause == nil {
		e.cause = cause
		close(e.done)
		g.news()
	}
}

// broadcast tells both guardians. The caller holds mu, which keeps the order of messages that of the changes.
func (g *Guard) broadcast(m *guard.Message) {
	for _, s := range g.seats {
		if s != nil {
			g.send(s, m)
		}
	}
}

func (e *epoch) begin() *guard.Message {
	return &guard.Message{Op: guard.OpBegin, Epoch: e.number, Ticket: e.ticket}
}

// replay is everything a new guardian has to know. The caller holds mu.
func (g *Guard) replay() []*guard.Message {
	var all []*guard.Message
	if g.lent != nil {
		all = append(all, g.lent)
	}
	if g.kennel.dog != nil {
		all = append(all, g.kennel.dog.lending())
	}
	for _, e := range g.epochs {
		begin := e.begin()
		if errors.Is(e.cause, ErrGuardiansLost) {
			begin.Ticket = nil // this process lives, keeps the session and gives back what it holds by itself
		}
		if e.cause != nil {
			begin.Deadline, begin.OK = e.deadline, true
		}
		all = append(all, begin)
		if e.deadline > 0 && e.cause == nil {
			all = append(all, &guard.Message{Op: guard.OpExtend, Epoch: e.number, Deadline: e.deadline})
		}
		for _, t := range e.trees {
			all = append(all, t.registration())
			all = append(all, t.membersOf()...)
			if t.armed {
				all = append(all, t.arming())
			}
		}
		if e.cause != nil {
			all = append(all, &guard.Message{Op: guard.OpEnd, Epoch: e.number, Why: e.cause.Error()})
		}
	}
	return all
}

// call sends a message and waits until both guardians have done it. A guardian that takes too long is replaced.
func (g *Guard) call(ctx context.Context, m *guard.Message) error {
	g.mu.Lock()
	g.seq++
	m.Seq = g.seq
	g.broadcast(m)
	g.mu.Unlock()
	return g.answered(ctx, m.Seq)
}

func (g *Guard) answered(ctx context.Context, seq uint64) error {
	defer func() {
		g.mu.Lock()
		delete(g.nacks, seq)
		g.mu.Unlock()
	}()
	patience := time.NewTimer(ackLimit)
	defer patience.Stop()
	giveUp := time.NewTimer(4 * ackLimit)
	defer giveUp.Stop()
	for {
		g.mu.Lock()
		changed, nack, all := g.changed, g.nacks[seq], true
		for _, s := range g.seats {
			all = all && s != nil && s.acked >= seq
		}
		g.mu.Unlock()
		switch {
		case nack != nil:
			return nack
		case all:
			return nil
		}
		select {
		case <-changed:
		case <-patience.C:
			g.killSilent(seq)
		case <-giveUp.C:
			return errors.New("the guardians do not answer")
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-g.stopped:
			return ErrStopped
		}
	}
}

// killSilent ends the guardians that have not answered, so that Run replaces them.
func (g *Guard) killSilent(seq uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.seats {
		if s != nil && s.live && s.acked < seq {
			s.because(errors.New("it does not answer"))
			s.kill()
		}
	}
}
