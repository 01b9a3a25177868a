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
	return g.pair.Ledger.Begin(number, ticket)
}

// Extend implements supervisor.Guard.
func (g *keeper) Extend(number uint64, deadline time.Duration) error {
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	return g.pair.Ledger.Extend(g.now(), number, deadline)
}

// Finish implements supervisor.Guard.
func (g *keeper) Finish(number uint64) error {
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	return g.pair.Ledger.Finish(number)
}

// Over implements supervisor.Guard.
func (g *keeper) Over(number uint64) <-chan struct{} {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	return g.pair.Ledger.Over(number)
}

// Cause implements supervisor.Guard.
func (g *keeper) Cause(number uint64) error {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	return g.pair.Ledger.Cause(number)
}

// NewTree implements supervisor.Guard.
func (g *keeper) NewTree(ctx context.Context, number uint64, name string, release []byte) (supervisor.Tree, error) {
	if !g.inc.pass() {
		return nil, errCrashed
	}
	g.w.mu.Lock()
	t, seq, err := g.plant(number, name, release)
	g.changed()
	g.w.mu.Unlock()
	if err == nil {
		if err = g.answered(ctx, seq); err != nil {
			err = errors.Join(err, t.End(context.WithoutCancel(ctx)))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("new tree %s in epoch %d: %w", name, number, err)
	}
	return t, nil
}

// plant makes a tree. World.mu is held.
func (g *keeper) plant(number uint64, name string, release []byte) (t *handle, seq uint64, err error) {
	e, err := g.pair.Ledger.Epoch(number)
	if err != nil {
		return nil, 0, err
	}
	var ticket election.Ticket
	_ = json.Unmarshal(e.Ticket, &ticket) // what runs beside any session has none
	n := g.inc.node
	service, what, _ := strings.Cut(name, "/")
	t = &handle{guard: g, killing: make(chan struct{}, 1)}
	g.planted++
	t.tree = &tree{
		host: n.host, of: g, node: n.name, service: service, aside: what, session: ticket.Session, procs: map[*proc]struct{}{}, known: map[*guardian]struct{}{}, changed: make(chan struct{}),
		id: treeID{Name: fmt.Sprintf("%s.%d.%s.%d", n.name, g.inc.number, name, g.planted), Boot: n.host.boot()},
	}
	if t.entry, seq, err = g.pair.Ledger.Plant(g.now(), number, t.plant(release)); err != nil {
		return nil, 0, err
	}
	if what == "" {
		g.inc.stood[name] = true
	}
	n.host.trees[t.id.Name] = t.tree
	return t, seq, nil
}

// answered waits until both guardians have done what they were asked. One that takes too long is replaced.
func (g *keeper) answered(ctx context.Context, seq uint64) error {
	for {
		if !g.inc.pass() {
			return errCrashed
		}
		g.w.mu.Lock()
		done, err := g.pair.Answered(seq)
		changed := g.pair.Changed()
		g.w.mu.Unlock()
		if done {
			return err
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-g.stopped:
			err = child.ErrStopped
		}
		g.forget(seq)
		return err
	}
}

func (g *keeper) forget(seq uint64) {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	g.pair.Forget(seq)
}
