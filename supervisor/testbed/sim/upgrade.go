package sim

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child"
	"understudy/supervisor/guard"
	machine "understudy/supervisor/host"
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
	if hf.plan.Calm && hf.nemesis.servers.outages > 0 { // see docs/failsafe.md
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

// upgradeBetween asks for an upgrade about when the next session opens, in which a program that has outlasted the previous one needs its lock
// again: as often as not, in half of the seeds in which all of ZooKeeper goes. World.mu is held.
func (i *incarnation) upgradeBetween() {
	n := i.node
	p := n.w.plan
	if !p.outages() || p.Calm || p.Seed%2 == 0 {
		return
	}
	n.covers++
	if n.covers%2 == 0 {
		return
	}
	n.w.after(time.Duration(n.covers*7%32)*time.Millisecond, func() {
		if n.inc == i {
			n.w.nemesis.hosts.upgrade(Fault{Kind: UpgradeSupervisor, Node: n.index, N: n.covers / 2, For: p.Timeout / 2}, n)
			n.w.nemesis.noteFault(UpgradeSupervisor)
		}
	})
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
	if n.inc != i || w.course.over {
		return errCrashed
	}
	if i.fate.fate() == upgradeFails {
		w.say("%s: supervisor %d finds no other image", n.name, i.number)
		return errNoImage
	}
	l, err := i.guard.handing()
	if err != nil {
		return err
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
	next.guard = i.guard.inherited(next, l)
	next.servers = i.servers
	cfg := n.config(next)
	cfg.Handover = legacy
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
func (g *keeper) HandOver(_ context.Context, trees map[uint64]int, do func(json.RawMessage) error) error {
	if !g.inc.pass() {
		return errCrashed
	}
	g.w.mu.Lock()
	g.handing = func() (guard.Handover, error) { return g.legacy(trees) }
	_, err := g.handing()
	g.w.mu.Unlock()
	if err != nil {
		return err
	}
	return do(json.RawMessage("{}"))
}

// legacy is what the next image has to know. World.mu is held.
func (g *keeper) legacy(trees map[uint64]int) (l guard.Handover, err error) {
	if l, err = g.pair.HandOver(g.now(), trees); err != nil {
		return l, err
	}
	busy := len(g.watchdog.turn) > 0
	for _, s := range g.guardians {
		busy = busy || s == nil || !s.alive() || len(s.line.unsent) > 0
	}
	if busy {
		return l, child.ErrBusy
	}
	return l, nil
}

// inherited is what the next image knows of the guardians, which know nothing of it. World.mu is held.
func (g *keeper) inherited(inc *incarnation, l guard.Handover) *keeper {
	next := bareKeeper(inc)
	if d := g.watchdog.device; d != nil {
		next.watchdog.device = d
		delete(d.holders, g)
		d.holders[next] = true
	}
	for _, e := range l.Leases {
		for i := range e.Trees {
			was := e.Trees[i].Spec.Of.(*handle)
			was.tree.of = next.twins
			mine := &handle{tree: was.tree, guard: next, held: was.held}
			e.Trees[i].Spec = mine.spec(e.Trees[i].Spec.Release)
		}
	}
	var numbers [2]uint64
	next.pair, numbers = guard.Adopt(g.now(), guardianHands{next.twins}, l)
	next.took(numbers, g.guardians)
	for _, s := range g.guardians {
		s.former = true
	}
	next.planted = g.planted
	for _, e := range next.pair.State.Leases() {
		for _, t := range e.Trees() {
			t.Spec.Of.(*handle).guarded = t
		}
	}
	return next
}

// Adopt is Guard's counterpart for what a previous image has handed over.
func (i *incarnation) Adopt(_ context.Context, _ json.RawMessage, _ string, _ hclog.Logger) (machine.Guard, error) {
	if !i.pass() {
		return nil, errCrashed
	}
	i.node.w.mu.Lock()
	defer i.node.w.mu.Unlock()
	return i.guard, nil
}

// Adopted is child.Guard's.
func (g *keeper) Adopted(id json.RawMessage) (machine.Tree, bool) {
	var tid treeID
	if json.Unmarshal(id, &tid) != nil {
		return nil, false
	}
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	for _, t := range g.trees() {
		if t.id == tid {
			return t, true
		}
	}
	return nil, false
}

// Process is child.Tree's.
func (t *handle) Process(pid int) (machine.Process, bool) {
	t.guard.w.mu.Lock()
	defer t.guard.w.mu.Unlock()
	for _, p := range t.all() {
		if p.pid == pid {
			return &process{p, t.guard.inc}, true
		}
	}
	return nil, false
}

// WatchdogArmed is asked by nobody here.
func (*keeper) WatchdogArmed() bool { return false }
