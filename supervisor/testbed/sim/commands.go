package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"understudy/election"
	"understudy/election/jute"
	"understudy/supervisor/control"
	"understudy/supervisor/testbed/zkfaults"
)

// In one of so many seeds operators use more commands while things fail: drain, forget, and fence confirm, by the code of the command line.
const (
	commandsIn   = 13
	commandsFrom = 7
)

// commands adds that to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) commands() {
	if p.Seed%commandsIn != commandsFrom || p.Calm {
		return
	}
	kinds := []Kind{DrainNode, DrainNode, ConfirmDeath, ConfirmDeath}
	if !p.Replicated { // to forget which copies there are, or to promote two, is to lose data
		kinds = append(kinds, ForgetName, ForgetName, ConfirmAlive, ConfirmAlive)
	}
	r := rand.New(rand.NewPCG(p.Seed, 31))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		for range r.IntN(3) {
			f := p.fault(r, pick(r, kinds...))
			f.At = drawn(r, e.Length)
			if f.For = drawn(r, 4*p.Timeout); f.Kind != DrainNode { // until sessions have ended, and what comes after that
				f.For, f.Active = 2*p.Timeout+drawn(r, 6*p.Timeout), true
			}
			e.Length = max(e.Length, f.At+f.For)
			e.Faults = append(e.Faults, f)
		}
		sortFaults(e.Faults)
	}
}

// with runs an operator's command. It tells whether it is known to be done.
func (o *operator) with(run func(context.Context, *control.Cluster) error) bool {
	o.mu.Lock()
	over := o.course.over
	o.mu.Unlock()
	if over {
		return false
	}
	ctx, enough := context.WithTimeout(context.Background(), o.plan.Timeout)
	defer enough()
	c, err := control.Open(ctx, o.client())
	if err != nil {
		return false
	}
	defer c.Close()
	err = run(ctx, c)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.say("operator: is answered: %v", err)
	}
	return err == nil
}

// insist tries a command again and again until it is done, or the fault is over.
func (o *operator) insist(f Fault, try func() (done bool)) (end func()) {
	over := make(chan struct{})
	o.wait.Go(func() {
		for until := time.Now().Add(f.For); time.Now().Before(until) && !o.broken(); {
			select {
			case <-over:
				return
			case <-time.After(o.plan.Timeout / 10):
			}
			if try() {
				o.nemesis.count(f.Kind)
				return
			}
		}
	})
	return func() { close(over) }
}

// drain has an operator keep a node out of all services for a while.
func (o *operator) drain(f Fault) (end func(), done bool) {
	node := o.nodes[f.Node].name
	done = o.with(func(ctx context.Context, c *control.Cluster) error {
		o.say("operator: drains %s", node)
		_, _, err := c.Drain(ctx, control.Draining{Node: node, By: "operator", Force: f.N%2 == 0})
		return err
	})
	return func() { o.undrain(node) }, done
}

func (o *operator) undrain(node string) {
	o.with(func(ctx context.Context, c *control.Cluster) error {
		o.say("operator: ends the drain of %s", node)
		_, err := c.Undrain(ctx, node, "operator")
		return err
	})
}

// forget has an operator forget a service that is in no config, or a node that is drained and has no power. Control says when they may.
func (o *operator) forget(f Fault) (end func(), done bool) {
	name, n := o.nemesis.serviceOf(f), o.nodes[f.Node]
	var back func()
	if f.Way%2 == 0 {
		back, done = o.nemesis.begin(Fault{Kind: ChangeConfig, N: f.N, Way: removeAll})
	} else if name = n.name; o.with(func(ctx context.Context, c *control.Cluster) error {
		_, _, err := c.Drain(ctx, control.Draining{Node: name, By: "operator", Force: true})
		return err
	}) {
		back, done = o.nemesis.begin(Fault{Kind: PowerOff, Node: n.index})
	}
	if !done {
		return nil, false
	}
	o.say("%v: %s", f, name)
	enough := o.insist(f, func() bool {
		o.mu.Lock()
		v := o.check.services[name]
		if v != nil {
			v.forgets++
		}
		o.mu.Unlock()
		done := o.with(func(ctx context.Context, c *control.Cluster) error {
			_, err := c.Forget(ctx, name)
			return err
		})
		if done {
			o.say("operator: %s is forgotten", name)
		}
		return done
	})
	return func() {
		enough()
		back()
	}, true
}

// confirm has an operator confirm the death of what the breadcrumb names while a takeover waits for that. He has looked: nothing of it is
// there. With ConfirmAlive something is, and he says so all the same: two that run then are his.
func (o *operator) confirm(f Fault) (end func(), done bool) {
	causes := []Kind{PowerOff, CutLink, CrashSupervisor, StickProcesses}
	if f.Kind == ConfirmAlive {
		causes = []Kind{StickProcesses, StickProcesses, CutLink}
	}
	cause := Fault{Kind: causes[f.N%len(causes)], Node: f.Node, Server: -1, For: f.For, N: f.N / 8 % 2}
	back, done := o.nemesis.begin(cause)
	if !done {
		return nil, false
	}
	service := o.nemesis.serviceOf(f)
	enough := o.insist(f, func() bool {
		o.mu.Lock()
		v := o.check.services[service]
		node, tree := v.crumb.node, v.crumb.tree
		pending := v.crumb.there && (!v.lock.there || v.crumb.session != election.SessionName(v.lock.owner))
		if lives := v.lives(tree) || len(o.check.effects.of(service)) > 0; !pending || lives != (f.Kind == ConfirmAlive) {
			o.mu.Unlock()
			return false
		}
		if f.Kind == ConfirmAlive {
			v.sworn[tree] = true
		}
		o.mu.Unlock()
		return o.with(func(ctx context.Context, c *control.Cluster) error {
			o.say("operator: %s, of %s on %s", f.Kind, service, node)
			done, err := c.Confirm(ctx, service, node, control.Confirming{By: "operator", Force: f.Kind == ConfirmAlive, EffectsGone: true})
			if err == nil && !done.Done {
				err = errNotDone
			}
			return err
		})
	})
	return func() {
		enough()
		if back != nil {
			back()
		}
	}, true
}

// lives reports whether something of a tree is alive.
func (v *serviceView) lives(tree treeID) bool {
	for p := range v.living {
		if p.tree.id == tree {
			return true
		}
	}
	return false
}

// swornDead notes that a breadcrumb went on an operator's word that what it names is dead: he answers for what lives of it.
func (c *checker) swornDead(v *serviceView, tree treeID) {
	if !v.sworn[tree] {
		return
	}
	for _, p := range inOrder(v.living) {
		if p.tree.id == tree {
			v.struck[p.token], v.oath[p.token] = true, true
		}
	}
	for _, e := range c.effects.of(v.name) {
		if e.tree == tree {
			e.struck = true
		}
	}
}

// drainsView is the nodes that operators keep out of all services, since when.
type drainsView map[string]time.Time

// changed takes a change of an order that drains a node.
func (d drainsView) changed(ch zkfaults.ZnodeChange) {
	node, ok := strings.CutPrefix(ch.Path, election.DrainedDir(root)+"/")
	switch {
	case !ok:
	case ch.Kind == jute.EventNodeDeleted:
		delete(d, node)
	default:
		d[node] = time.Now()
	}
}

// drainedTakes looks at a lock that a node has taken: one that is drained, and could know it for long, takes none, unless
// that is ordered by force.
func (c *checker) drainedTakes(v *serviceView, node string) {
	since, drained := c.drains[node]
	heard := 2*c.w.plan.longest() + time.Duration(c.w.plan.SyncLimit)*c.w.plan.Tick
	if drained && time.Since(since) > heard && !v.orders.Forces(node) {
		c.broken("drain", "%s takes the lock of %s, though it has been drained for %v", node, v.name, time.Since(since))
	}
}

// undrainAll ends what is drained when all is healed: that an order which nobody acknowledged may have come through is an
// operator's to know.
func (o *operator) undrainAll() {
	o.mu.Lock()
	var all []string
	for node := range o.check.drains {
		all = append(all, node)
	}
	o.mu.Unlock()
	slices.Sort(all)
	for _, node := range all {
		o.undrain(node)
	}
}

var errNotDone = errors.New("nothing was to be done")
