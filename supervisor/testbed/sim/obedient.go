package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"understudy/election"
	"understudy/supervisor/control"
)

// In one of so many seeds operators do what status says: at any moment while things fail, and after that, where everywhere else they know by
// themselves what has to be done. They look first where status says so, and see what is there.
const (
	obeysIn   = 9
	obeysFrom = 2
)

// obedient tells whether the seed has such operators.
func (p *Plan) obedient() bool { return p.Seed%obeysIn == obeysFrom && !p.Calm && !p.Replicated }

// obeys adds what they do to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) obeys() {
	if !p.obedient() {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 37))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		for range 1 + r.IntN(2) {
			f := Fault{Kind: DoAsTold, Node: r.IntN(p.Nodes), Server: -1, N: r.IntN(1 << 16), At: drawn(r, e.Length), For: drawn(r, 6*p.Timeout)}
			e.Length = max(e.Length, f.At+f.For)
			e.Faults = append(e.Faults, f)
		}
		sortFaults(e.Faults)
	}
}

// obeyed has an operator look at status again and again, until it says what to do.
func (o *operator) obeyed(f Fault) (end func(), done bool) {
	return o.insist(f, o.obey), true
}

// obey has an operator do the first thing that status says. It tells whether that was done.
func (o *operator) obey() (done bool) {
	o.with(func(ctx context.Context, c *control.Cluster) error {
		s, err := c.Status(ctx)
		if err != nil {
			return err
		}
		for _, do := range told(s) {
			if did, err := o.follow(ctx, c, do); did {
				o.say("operator: does as told: %s: %v", do, err)
				done = err == nil
				return err
			}
		}
		return nil
	})
	return done
}

// told is each command that status prints.
func told(s control.Status) (all []control.Remedy) {
	for _, v := range s.Services {
		for _, p := range v.Problems {
			all = append(all, p.Do)
		}
	}
	for _, d := range s.Drained {
		all = append(all, d.Undrain())
	}
	for _, g := range s.Gone {
		all = append(all, g.Forget())
	}
	return slices.DeleteFunc(all, func(do control.Remedy) bool { return len(do.Words) == 0 || do.Here || do.Wraps != "" })
}

// follow does what a command of status does, if what status has an operator look at is so.
func (o *operator) follow(ctx context.Context, c *control.Cluster, do control.Remedy) (did bool, err error) {
	command, name := do.Words[0], do.Words[1]
	switch command {
	case "understudy start":
		_, err = c.Stop(ctx, name, false, "operator", "")
	case "understudy resume":
		_, err = c.Pause(ctx, name, false, "operator", "")
	case "understudy undrain":
		_, err = c.Undrain(ctx, name, "operator")
	case "understudy forget":
		if !o.willNotComeBack(name) {
			return false, nil
		}
		_, err = c.Forget(ctx, name)
	case "understudy fence confirm":
		node := strings.TrimPrefix(do.Words[2], "--node ")
		if !o.leftNothing(name, node) {
			return false, nil
		}
		_, err = c.Confirm(ctx, name, node, control.Confirming{By: "operator", EffectsGone: true})
	default:
		panic(fmt.Sprintf("status says %q, which no operator of the simulation knows", do))
	}
	return true, err
}

// willNotComeBack reports whether a service is in no config, or a node has no power.
func (o *operator) willNotComeBack(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if v := o.check.services[name]; v != nil {
		gone := !slices.Contains(o.settings[name].gone, false)
		if gone {
			v.forgets++
		}
		return gone
	}
	i := o.indexOf(name)
	return i >= 0 && !o.nodes[i].host.on
}

// leftNothing reports whether nothing of a service is left on a node.
func (o *operator) leftNothing(service, node string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := o.check.services[service]
	pending := v.crumb.there && v.crumb.node == node && (!v.lock.there || v.crumb.session != election.SessionName(v.lock.owner))
	return pending && !v.lives(v.crumb.tree) && len(o.check.effects.of(service)) == 0
}

// putRight ends what operators have ordered, when all is healed.
func (o *operator) putRight() {
	if o.plan.obedient() {
		for o.obey() {
		}
		return
	}
	o.resume()
	o.undrainAll()
}
