package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"understudy/election"
	"understudy/supervisor"
	"understudy/supervisor/child"

	"understudy/supervisor/guard"
)

// Kind implements supervisor.Guard.
func (g *keeper) Kind() string { return child.KindCgroup }

// Pid implements supervisor.Guard.
func (g *keeper) Pid() int { return 1 }

// Begin implements supervisor.Guard.
func (g *keeper) Begin(number uint64, ticket []byte) error {
	if !g.inc.pass() {
		return errCrashed
	}
	var t election.Ticket
	if ticket != nil { // what runs beside any session has none
		if err := json.Unmarshal(ticket, &t); err != nil {
			return err
		}
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if g.epochs[number] != nil {
		return fmt.Errorf("begin epoch %d: it has begun before", number)
	}
	g.epochs[number] = &epoch{
		number: number, ticket: ticket, session: t.Session, trees: map[uint64]*handle{}, done: make(chan struct{}),
	}
	g.broadcast(&guard.Message{Op: guard.OpBegin, Epoch: number, Ticket: ticket})
	return nil
}

// Extend implements supervisor.Guard.
func (g *keeper) Extend(number uint64, deadline time.Duration) error {
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	e := g.epochs[number]
	if e == nil {
		return errUnknownEpoch
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

// Finish implements supervisor.Guard.
func (g *keeper) Finish(number uint64) error {
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	e := g.epochs[number]
	if e == nil {
		return errUnknownEpoch
	}
	if len(e.trees) > 0 {
		return fmt.Errorf("finish epoch %d: %d trees have not ended", number, len(e.trees))
	}
	g.over(number, child.ErrLeaseEnded)
	delete(g.epochs, number)
	g.broadcast(&guard.Message{Op: guard.OpFinish, Epoch: number})
	return nil
}

// Over implements supervisor.Guard.
func (g *keeper) Over(number uint64) <-chan struct{} {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if e := g.epochs[number]; e != nil {
		return e.done
	}
	done := make(chan struct{})
	close(done)
	return done
}

// Cause implements supervisor.Guard.
func (g *keeper) Cause(number uint64) error {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	if e := g.epochs[number]; e != nil {
		return e.cause
	}
	return errUnknownEpoch
}

// NewTree implements supervisor.Guard.
func (g *keeper) NewTree(ctx context.Context, number uint64, name string, release []byte) (supervisor.Tree, error) {
	if !g.inc.pass() {
		return nil, errCrashed
	}
	g.w.mu.Lock()
	e := g.epochs[number]
	err := errUnknownEpoch
	if e != nil {
		err = g.live(e)
	}
	if err != nil {
		g.w.mu.Unlock()
		return nil, fmt.Errorf("new tree %s in epoch %d: %w", name, number, err)
	}
	n := g.inc.node
	service, what, _ := strings.Cut(name, "/")
	if what == "" {
		g.inc.stood[name] = true
	}
	g.trees++
	t := &handle{guard: g, epoch: e, number: g.trees, release: release, forked: make(chan struct{}), slayer: make(chan struct{}, 1)}
	t.tree = &tree{
		host: n.host, of: g, node: n.name, service: service, aside: what, session: e.session, procs: map[*proc]struct{}{}, changed: make(chan struct{}),
		id: treeID{Name: fmt.Sprintf("%s.%d.%s.%d", n.name, g.inc.number, name, g.trees), Boot: n.host.boot()},
	}
	n.host.trees[t.id.Name] = t.tree
	e.trees[t.number] = t
	g.seq++
	seq := g.seq
	m := t.registration()
	m.Seq = seq
	g.broadcast(m)
	g.w.mu.Unlock()
	if err := g.answered(ctx, seq); err != nil {
		return nil, fmt.Errorf("new tree %s in epoch %d: %w", name, number, errors.Join(err, t.End(context.WithoutCancel(ctx))))
	}
	return t, nil
}

// answered waits until both guardians have done what they were told. One that takes too long is replaced.
func (g *keeper) answered(ctx context.Context, seq uint64) error {
	patience := time.NewTimer(ackLimit)
	defer patience.Stop()
	giveUp := time.NewTimer(4 * ackLimit)
	defer giveUp.Stop()
	for {
		if !g.inc.pass() {
			return errCrashed
		}
		g.w.mu.Lock()
		changed, nack, all := g.change(), g.nacks[seq], true
		for _, s := range g.seats {
			all = all && s != nil && s.acked >= seq
		}
		if nack != nil || all {
			delete(g.nacks, seq)
		}
		g.w.mu.Unlock()
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
			return child.ErrStopped
		}
	}
}

func (g *keeper) killSilent(seq uint64) {
	if !g.inc.pass() {
		return
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	for _, s := range g.seats {
		if s != nil && s.live && s.acked < seq {
			s.die()
		}
	}
}
