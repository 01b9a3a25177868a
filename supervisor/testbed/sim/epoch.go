package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"understudy/election"
	"understudy/supervisor/child/box"
	machine "understudy/supervisor/host"
)

// Kind implements host.Guard.
func (g *keeper) Kind() string { return box.KindCgroup }

// Maker implements host.Guard.
func (g *keeper) Maker() (box.Maker, error) { return box.Maker{}, errors.ErrUnsupported }

// Pid implements host.Guard.
func (g *keeper) Pid() int { return 1 }

// NewTree implements host.Guard.
func (g *keeper) NewTree(ctx context.Context, number uint64, name string, release []byte) (machine.Tree, error) {
	if !g.inc.pass() {
		return nil, errCrashed
	}
	g.w.mu.Lock()
	t, seq, err := g.addTree(number, name, release)
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

// addTree makes a tree. World.mu is held.
func (g *keeper) addTree(number uint64, name string, release []byte) (t *handle, seq uint64, err error) {
	e, err := g.pair.State.Lease(number)
	if err != nil {
		return nil, 0, err
	}
	var ticket election.Ticket
	_ = json.Unmarshal(e.Ticket, &ticket) // what runs beside any session has none
	n := g.inc.node
	service, what, _ := strings.Cut(name, "/")
	t = &handle{guard: g}
	g.planted++
	t.tree = &tree{
		host: n.host, of: g.twins, node: n.name, service: service, aside: what, session: ticket.Session, procs: map[*proc]struct{}{}, known: map[*guardian]struct{}{}, changed: make(chan struct{}),
		id: treeID{Name: fmt.Sprintf("%s.%d.%s.%d", n.name, g.inc.number, name, g.planted), Boot: n.host.boot()},
	}
	if t.guarded, seq, err = g.pair.State.AddTree(g.now(), number, t.spec(release)); err != nil {
		return nil, 0, err
	}
	if what == "" || what == "copy" {
		g.inc.stood[name] = true
	}
	n.host.trees[t.id.Name] = t.tree
	return t, seq, nil
}
