package sim

import (
	"context"
	"maps"
	"net"
	"slices"
	"time"

	"understudy/fencing"
	"understudy/supervisor"
)

// start begins a new supervisor process on the node. World.mu is held.
func (n *node) start() {
	w := n.w
	if n.inc != nil || !n.host.on || w.course.over {
		return
	}
	if wait := time.Until(n.down); wait > 0 && !n.remembers() {
		w.after(wait, n.start)
		return
	}
	if w.plan.outages() && w.check.outlasts() {
		w.after(w.plan.Timeout/10, n.start)
		return
	}
	inc, ctx := n.bear()
	w.say("%s: supervisor %d starts", n.name, inc.number)
	inc.servers = n.listed()
	n.run(ctx, inc, n.config(inc))
}

// bear makes the node's next incarnation. World.mu is held.
func (n *node) bear() (*incarnation, context.Context) {
	ctx, cancel := context.WithCancel(context.Background())
	n.births++
	inc := &incarnation{
		gate: newGate(n.w.thawJitter(n.host.rng)), node: n, number: n.births, boot: n.host.boots, stop: cancel, stood: map[string]bool{},
		changes: make(chan supervisor.Change, 1), upgrades: make(chan struct{}, 1),
	}
	n.inc = inc
	n.all = append(n.all, inc)
	n.w.check.sight.born(n.name)
	return inc, ctx
}

// run has an incarnation do its work.
func (n *node) run(ctx context.Context, inc *incarnation, cfg supervisor.Config) {
	w, cancel := n.w, inc.stop
	w.wait.Go(func() {
		_, err := supervisor.Run(ctx, cfg)
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		if inc.alive() {
			w.say("%s: supervisor %d has ended: %v", n.name, inc.number, err)
			n.crash(true)
			if !inc.asked {
				w.after(time.Second, n.start)
			}
		}
	})
}

// comeBack begins a new supervisor, once the previous one has ended that was asked to. World.mu is held.
func (n *node) comeBack() {
	if n.inc != nil {
		n.inc.asked = false
	}
	n.start()
}

func (n *node) config(inc *incarnation) supervisor.Config {
	p := n.w.plan
	cfg := supervisor.Config{
		Node: n.name, Host: n.host.name, Version: "sim", Servers: inc.servers, Root: root, Lease: p.lease(n.index), Logger: newSink(inc),
		MostInTurn: p.InTurn, Machine: inc, Dial: inc.dial, Services: n.services(inc), Changes: inc.changes, Agent: inc.agent(), Notes: inc.notes, Copies: inc.copies,
		Upgrade: supervisor.Upgrade{Asked: inc.upgrades, Become: inc.become}, Watchdog: p.watchdog(), Stuck: inc.stuck,
		Broken: func(err error) { n.w.drills.violated("role", "%s: %v", n.name, err) }, Memory: memory{inc}, WithUndos: inc.owing, Lacks: inc.lacks(),
		Links: inc.links(),
	}
	if cfg.Resolver = inc.resolver(); cfg.Resolver != nil {
		cfg.Dial = nil
	}
	inc.cluster = supervisor.ClusterOf(cfg)
	return cfg
}

// dial is the supervisor's way to ZooKeeper.
func (i *incarnation) dial(ctx context.Context, address string) (net.Conn, error) {
	if !i.pass() {
		return newTomb(), nil
	}
	c, err := i.node.w.net.dial(ctx, i.node.host.index, serverOf(address), i.gate)
	if err != nil {
		return nil, err
	}
	g := c.(*gated)
	g.trap = i.trap
	return &beating{gated: g, node: i.node, sent: map[uint32]time.Time{}}, nil
}

// crash ends the supervisor process: at once, all its effects are cut off. World.mu is held.
func (n *node) crash(tell bool) {
	inc := n.inc
	if inc == nil {
		return
	}
	n.inc = nil
	inc.kill()
	n.w.net.sever(inc.gate, tell)
	if inc.ear != nil {
		inc.ear.sever(tell)
	}
	for _, g := range n.host.guardians() {
		if g.of.inc == inc {
			g.orphan()
		}
	}
	n.w.after(0, func() { inc.stop() })
	if inc.guard != nil {
		n.watchdog.close(inc.guard)
		n.w.after(time.Second, func() { n.w.check.orphans.outlived(inc.guard.twins) })
	}
}

// powerOff ends everything on a host, and tells nobody. World.mu is held.
func (h *host) powerOff() {
	if !h.on {
		return
	}
	h.on = false
	h.w.say("%s: power off", h.name)
	for _, n := range h.w.nodes {
		if n.host == h {
			n.crash(false)
		}
	}
	for _, g := range h.guardians() {
		g.die()
		g.fall()
	}
	for _, name := range slices.Sorted(maps.Keys(h.trees)) {
		for _, p := range h.trees[name].all() {
			p.doomed = false
			p.die(p.status)
		}
	}
	for _, n := range h.w.nodes {
		if n.host == h {
			n.watchdog.off()
		}
	}
	for aside := range h.asides {
		aside.kill()
	}
	h.trees, h.locks = map[string]*tree{}, map[fileKey]*gate{}
	maps.DeleteFunc(h.notes, func(_ fileKey, one note) bool { return !one.lasting })
	clear(h.known)
	h.stuck = time.Time{}
	if h.disk != nil {
		h.disk.late = nil
	}
	for _, n := range h.w.nodes {
		if n.host == h {
			h.w.check.effects.off(n.name)
		}
	}
}

// powerOn boots. World.mu is held.
func (h *host) powerOn() {
	if h.on {
		return
	}
	h.on = true
	h.boots++
	h.w.say("%s: boot %d", h.name, h.boots)
	for _, n := range h.w.nodes {
		if n.host == h {
			h.w.after(drawn(h.rng, h.w.plan.Timeout), n.start)
		}
	}
}

// mayLose tells whether so many of the three can be taken out of action. World.mu is held.
func (i *incarnation) mayLose(n int) bool { return i.guard == nil || i.guard.healthy() > n }

// halt stops the supervisor process for a while. World.mu is held.
func (i *incarnation) halt(d time.Duration) {
	i.node.w.say("%s: supervisor %d freezes for %v", i.node.name, i.number, d.Round(time.Millisecond))
	i.freeze()
	i.node.w.after(d, func() {
		if i.alive() {
			i.node.w.say("%s: supervisor %d thaws", i.node.name, i.number)
			i.awake = time.Now()
			i.node.thaws = append(i.node.thaws, i.awake)
			go i.thaw() // what waited takes locks of its own
		}
	})
}

// stonith is a fencing method that switches off the host of a node.
type stonith struct{ inc *incarnation }

// Name implements fencing.Method.
func (stonith) Name() string { return "stonith" }

// Fence implements fencing.Method.
func (s stonith) Fence(ctx context.Context, t fencing.Target) error {
	w := s.inc.node.w
	if !s.inc.pass() || !w.sleep(ctx, w.draw(s.inc.node.host.rng, w.plan.Timeout/2)) || !s.inc.pass() {
		return errCrashed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nemesis.hosts.unfenced || s.inc.node.host.rng.IntN(4) == 0 && !w.course.quiet {
		return errNoStonith
	}
	for _, n := range w.nodes {
		if n.name == t.Node {
			w.say("%s: switches off %s", s.inc.node.name, n.host.name)
			n.host.powerOff()
			w.check.effects.fenced(n.name)
			w.after(w.plan.Timeout, n.host.powerOn)
		}
	}
	return nil
}
