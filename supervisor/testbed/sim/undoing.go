package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"understudy/supervisor/guard"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/unit"
)

// NoteUndos implements host.Tree.
func (t *handle) NoteUndos(ctx context.Context, note json.RawMessage) error {
	g := t.guard
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	seq, err := t.guarded.NoteUndos(g.now(), note)
	g.changed()
	g.w.mu.Unlock()
	if err != nil {
		return err
	}
	return g.answered(ctx, seq)
}

// ReportUndone implements host.Tree.
func (t *handle) ReportUndone(undone bool) {
	g := t.guard
	if !g.inc.pass() {
		return
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	t.guarded.ReportUndone(undone)
	g.changed()
}

// heldEffects is what a guardian knows of a tree's effects.
type heldEffects struct{ unit.Note }

// Close implements guard.Effects.
func (heldEffects) Close() {}

// Hold implements guard.Hands.
func (h *hands) Hold(m *guard.Message) (guard.Effects, error) {
	var e heldEffects
	return e, json.Unmarshal(m.Ticket, &e.Note)
}

// haveUndone is what attempts have come to since it was asked last.
func (h *hands) haveUndone() []guard.Undone {
	undone := h.undone
	h.undone = nil
	return undone
}

// Undo implements guard.Hands: in a process of its own, which outlives the guardian.
func (h *hands) Undo(number uint64, e guard.Effects) {
	g := h.guardian
	note, aside := e.(heldEffects).Note, &gate{jitter: func() time.Duration { return 0 }}
	g.host.asides[aside] = struct{}{}
	soon := drawn(g.host.lags, 20*time.Millisecond)
	g.w.wait.Go(func() {
		g.w.sleep(context.Background(), soon)
		err := g.undo(note, aside)
		g.w.mu.Lock()
		delete(g.host.asides, aside)
		aside.kill()
		g.w.mu.Unlock()
		if !g.pass() {
			return
		}
		g.w.mu.Lock()
		defer g.w.mu.Unlock()
		h.undone = append(h.undone, guard.Undone{Tree: number, Err: err})
		g.wake()
	})
}

func (g *guardian) undo(n unit.Note, aside *gate) error {
	store := notes{aside, g.host, fileKey{effectKey{n.Node, n.Service}, n.Cluster}}
	return n.Undo(context.Background(), store, unit.Means{Run: func(_ context.Context, d unit.PendingUndo, _ string, command []string) error {
		return g.host.runAside(aside, n, d, command)
	}})
}

// runAside runs a command beside any supervisor, in a container of its own.
func (h *host) runAside(aside *gate, n unit.Note, d unit.PendingUndo, command []string) error {
	limit, enough := context.WithTimeout(context.Background(), d.Timeout)
	defer enough()
	if left := h.end(limit, aside, func(t *tree) bool { return t.node == n.Node && t.service == n.Service }); left != nil {
		return fmt.Errorf("an earlier attempt has not ended: %v", left)
	}
	if !aside.pass() {
		return errCrashed
	}
	h.w.mu.Lock()
	t := &tree{
		host: h, node: n.Node, service: n.Service, aside: "undo", procs: map[*proc]struct{}{}, known: map[*guardian]struct{}{}, changed: make(chan struct{}),
		id: treeID{Name: fmt.Sprintf("%s.%s/undo.%d", n.Node, n.Service, h.pid()), Boot: h.boot()},
	}
	h.trees[t.id.Name] = t
	nature, _ := h.w.programs.natureOf(t, command[0])
	p, err := t.fork(command[0], d.Token, nature)
	h.w.mu.Unlock()
	if err != nil {
		return err
	}
	limit, enough = context.WithTimeout(context.Background(), d.Timeout)
	defer enough()
	select {
	case <-p.done:
	case <-limit.Done():
	}
	if err := t.kill(context.Background(), aside); err != nil {
		return err
	}
	if p.status.Code != 0 {
		return &unit.Exited{Code: p.status.Code}
	}
	return nil
}

// Lock implements unit.Notes. The lock goes with the process that has it.
func (n notes) Lock(ctx context.Context) (unlock func(), err error) {
	if err := n.touch(ctx, false, nil); err != nil {
		return nil, err
	}
	h := n.host
	for {
		if !n.by.pass() {
			return nil, errCrashed
		}
		h.w.mu.Lock()
		if holder := h.locks[n.fileKey]; holder == nil || !holder.alive() {
			h.locks[n.fileKey] = n.by
			h.w.mu.Unlock()
			return func() {
				h.w.mu.Lock()
				defer h.w.mu.Unlock()
				if h.locks[n.fileKey] == n.by {
					delete(h.locks, n.fileKey)
				}
			}, nil
		}
		h.w.mu.Unlock()
		if !h.w.sleep(ctx, 5*time.Millisecond) {
			return nil, fmt.Errorf("%w: %w", keyfile.ErrLocked, context.Cause(ctx))
		}
	}
}
