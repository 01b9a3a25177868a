package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy/supervisor/child/box"
)

// orphans is the trees on a host whose supervisors are no more, and which are not known to be dead. World.mu is held.
func (h *host) orphans() (all []*tree) {
	for _, name := range slices.Sorted(maps.Keys(h.trees)) {
		if t := h.trees[name]; t.of != nil && !t.of.inc.alive() && (len(t.procs) > 0 || !t.removed) {
			all = append(all, t)
		}
	}
	return all
}

// end ends those of a host's orphans that are meant, for a process behind a gate, and returns one that could not be proved dead.
func (h *host) end(ctx context.Context, by *gate, meant func(*tree) bool) *box.Leftover {
	h.w.mu.Lock()
	all := h.orphans()
	h.w.mu.Unlock()
	for _, t := range slices.DeleteFunc(all, func(t *tree) bool { return !meant(t) }) {
		if t.kill(ctx, by) == nil {
			continue
		}
		h.w.mu.Lock()
		defer h.w.mu.Unlock()
		l := &box.Leftover{Tree: t.id.Name, State: "held by the kernel"}
		for _, p := range t.all() {
			l.Pid, l.Program = p.pid, p.program
			break
		}
		return l
	}
	return nil
}

// Leftover is child.Guard's.
func (g *keeper) Leftover(ctx context.Context, service string, id json.RawMessage) *box.Leftover {
	if !g.inc.pass() {
		return nil // nobody is there to hear it
	}
	var named treeID
	_ = json.Unmarshal(id, &named) // nil: none
	l := g.inc.node.host.end(ctx, g.inc.gate, func(t *tree) bool { return t.service == service })
	if l != nil {
		l.Named = l.Tree == named.Name
		g.w.mu.Lock()
		g.w.say("%s: supervisor %d finds what is left of %s: %v", g.inc.node.name, g.inc.number, service, l)
		g.w.mu.Unlock()
	}
	g.inc.pass()
	return l
}

// mayOpen tells whether nothing is left that the watchdog may be counting for.
func (g *keeper) mayOpen(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
	defer cancel()
	if l := g.inc.node.host.end(bounded, g.inc.gate, func(*tree) bool { return true }); l != nil {
		return fmt.Errorf("%w: %v", box.ErrLeftover, l)
	}
	return nil
}
