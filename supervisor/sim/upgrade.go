package sim

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor"
	"understudy/supervisor/child"
)

// In one of so many seeds supervisors become other images of their processes, beside all that happens there anyway: so the others
// are what they were before there were upgrades.
const (
	upgradesIn   = 8
	upgradesFrom = 5
)

// upgrades adds upgrades to the episodes that are drawn.
func (p *Plan) upgrades() {
	if p.Seed%upgradesIn != upgradesFrom {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 2))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		for range r.IntN(4) {
			f := Fault{Kind: UpgradeSupervisor, Node: r.IntN(p.Nodes), Active: r.IntN(3) > 0, N: r.IntN(1 << 16), At: drawn(r, e.Length), For: drawn(r, 2*p.Timeout)}
			if p.Calm { // nothing that anybody would notice
				f.N, f.For = wellUpgraded, 0
			}
			e.Faults = append(e.Faults, f)
		}
		sortFaults(e.Faults)
	}
}

// What becomes of an upgrade.
const (
	wellUpgraded = iota
	upgradeFails // there is no exec
	upgradeDies  // the next image is killed
	upgradeHangs // the next image is frozen
	upgradeCut   // the next image does not reach ZooKeeper
	upgradeFates
)

// fate is the fault's.
func (f Fault) fate() int { return f.N % (upgradeFates + 2) } // the others go well, too

// upgrade asks a supervisor to become another image. World.mu is held.
func (hf *hostFaults) upgrade(f Fault, n *node) (end func(), done bool) {
	if hf.plan.Calm && hf.nemesis.servers.outages > 0 { // see Failsafe in docs/protocol.md
		return nil, false
	}
	hf.upgraded = time.Now()
	inc := n.inc
	inc.fate = f
	select {
	case inc.upgrades <- struct{}{}:
	default:
	}
	return n.start, true
}

// become is the exec.
func (i *incarnation) become(legacy []byte) error {
	if !i.pass() {
		return errCrashed
	}
	n := i.node
	w := n.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.inc != i || w.over {
		return errCrashed
	}
	if i.fate.fate() == upgradeFails {
		w.say("%s: supervisor %d finds no other image", n.name, i.number)
		return errNoImage
	}
	next, ctx := n.bear()
	w.say("%s: supervisor %d becomes %d", n.name, i.number, next.number)
	i.kill()
	w.net.sever(i.gate, true)
	if i.ear != nil {
		i.ear.sever(true)
	}
	w.after(0, i.stop)
	next.stood, next.asked = maps.Clone(i.stood), i.asked
	next.guard = i.guard.inherited(next)
	cfg := n.config(next)
	cfg.Legacy = legacy
	n.run(ctx, next, cfg)
	next.suffer(i.fate)
	return errCrashed // nothing that it does from now on happens
}

var errNoImage = errors.New("no such binary")

// suffer is what happens to an image that has just begun. World.mu is held.
func (i *incarnation) suffer(f Fault) {
	n := i.node
	w := n.w
	soon := time.Duration(f.N/64%32) * time.Millisecond
	switch f.fate() {
	case upgradeDies:
		w.after(soon, func() {
			if n.inc == i && i.mayLose(1) {
				n.crash(true)
				w.after(f.For, n.start)
			}
		})
	case upgradeHangs:
		w.after(soon, func() {
			if n.inc == i && i.mayLose(1) {
				i.halt(f.For)
			}
		})
	case upgradeCut:
		w.nemesis.links.cutFor(Fault{Kind: CutLink, Node: n.index, Server: -1, For: f.For})
	}
}

// HandOver is child.Guard's.
func (g *keeper) HandOver(_ context.Context, number uint64, trees int, do func(json.RawMessage) error) error {
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	err := g.mayHandOver(number, trees)
	g.w.mu.Unlock()
	if err != nil {
		return err
	}
	return do(json.RawMessage("{}"))
}

func (g *keeper) mayHandOver(number uint64, trees int) error {
	e := g.epochs[number]
	switch {
	case e == nil || len(g.epochs) > 1 || len(e.trees) != trees || len(g.dogs) > 0:
		return child.ErrBusy
	case g.live(e) != nil:
		return e.cause
	case e.deadline == 0:
		return child.ErrNoLease
	}
	for _, s := range g.seats {
		if s == nil || !s.live || s.dead {
			return child.ErrBusy
		}
	}
	for _, t := range e.trees {
		if t.starting > 0 || t.killing || t.ended || t.buried || len(t.slayer) > 0 {
			return child.ErrBusy
		}
	}
	return nil
}

// inherited is what the next image knows of the guardians, which know nothing of it. World.mu is held.
func (g *keeper) inherited(inc *incarnation) *keeper {
	next := &keeper{
		w: g.w, inc: inc, nacks: map[uint64]error{}, epochs: map[uint64]*epoch{}, seats: g.seats, seq: g.seq, trees: g.trees,
		fallen: make(chan *guardian, 64), stopped: make(chan struct{}), dog: g.dog, dogs: make(chan struct{}, 1), stray: make(chan struct{}, 1),
	}
	if d := g.dog; d != nil {
		delete(d.holders, g)
		d.holders[next] = true
	}
	for _, s := range next.seats {
		if s != nil {
			s.of = next
		}
	}
	for number, e := range g.epochs {
		mine := &epoch{number: number, ticket: e.ticket, session: e.session, deadline: e.deadline, trees: map[uint64]*handle{}, done: make(chan struct{})}
		next.epochs[number] = mine
		for _, t := range e.trees {
			t.of = next
			mine.trees[t.number] = &handle{
				tree: t.tree, guard: next, epoch: mine, number: t.number, release: t.release, forked: make(chan struct{}), slayer: make(chan struct{}, 1),
				armed: t.armed, after: t.after,
			}
		}
	}
	return next
}

// Adopt is Guard's counterpart for what a former image has handed over.
func (i *incarnation) Adopt(_ context.Context, _ json.RawMessage, _ string, _ hclog.Logger) (supervisor.Guard, error) {
	if !i.pass() {
		return nil, errCrashed
	}
	i.node.w.mu.Lock()
	defer i.node.w.mu.Unlock()
	return i.guard, nil
}

// Adopted is child.Guard's.
func (g *keeper) Adopted(id json.RawMessage) (supervisor.Tree, bool) {
	var tid treeID
	if json.Unmarshal(id, &tid) != nil {
		return nil, false
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	for _, e := range g.inOrder() {
		for _, t := range e.inOrder() {
			if t.id == tid {
				return t, true
			}
		}
	}
	return nil, false
}

// Process is child.Tree's.
func (t *handle) Process(pid int) (supervisor.Process, bool) {
	t.guard.w.mu.Lock()
	defer t.guard.w.mu.Unlock()
	for _, p := range t.all() {
		if p.pid == pid {
			return &process{p, t.guard.inc}, true
		}
	}
	return nil, false
}

// Lend does nothing: a simulated guardian knows what it needs to answer.
func (*keeper) Lend(*os.File, []byte) error { return nil }

// Lent has the next image open the agent's address anew.
func (*keeper) Lent() (*os.File, error) { return nil, nil }

// WatchdogArmed is asked by nobody here.
func (*keeper) WatchdogArmed() bool { return false }
