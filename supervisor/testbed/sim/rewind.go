package sim

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/testbed/zkfaults"
)

// In one of so many seeds with one server alone, an operator sets all data back to an older copy.
const (
	rewindsIn   = 4
	rewindsFrom = 3
)

// rewound reports whether the server is set back in this plan. Not where strangers keep sessions: those that operators have ended would
// come back, and be kept.
func (p *Plan) rewound() bool {
	return p.Seed%rewindsIn == rewindsFrom && !p.Calm && p.Servers == 1 && !p.haunted()
}

// rewinds adds such faults to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) rewinds() {
	if !p.rewound() {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 19))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		if r.IntN(2) == 0 {
			continue
		}
		f := p.fault(r, RewindData)
		f.At, f.Active, f.For = drawn(r, e.Length), true, p.Timeout+drawn(r, 3*p.Timeout)
		e.Length = max(e.Length, f.At+f.For)
		e.Faults = append(e.Faults, f)
		sortFaults(e.Faults)
	}
}

// rewind takes a copy of all data, has the service move on, and sets the data back.
func (sf *serverFaults) rewind(f Fault) (end func(), done bool) {
	server := sf.zk.servers[0]
	sf.say("%v: a copy is made", f)
	backup, epoch, copied := server.Backup(), server.Zxid()>>32, time.Now()
	sf.mu.Lock()
	n := sf.nodes[f.Node]
	if inc := n.inc; inc != nil {
		inc.asked = true
		go inc.stop()
		sf.after(f.For/4, n.comeBack)
	}
	sf.mu.Unlock()
	return func() {
		if !sf.mayWipe() || !sf.sawSince(copied) {
			return
		}
		sf.mu.Lock()
		sf.nemesis.noteFault(f.Kind)
		sf.keepDown()
		sf.mu.Unlock()
		newest := sf.elected()
		sf.say("zk: all data is set back")
		server.Rewind(backup)
		for ; epoch < newest; epoch++ { // tokens of before can be outgrown only then: the supervisors' logs say so
			server.ElectLeader()
		}
		// As an ensemble does that is started with the copy: its changes are newer than all that was seen. Not with many services: a session may
		// have been about to end for long, and those that had left it cannot know then.
		if f.N%2 == 0 && sf.plan.InTurn == 0 {
			server.ElectLeader()
		}
	}, true
}

// sawSince tells whether every node has seen something newer than a copy, and has a session by which it notices that it is gone.
func (sf *serverFaults) sawSince(copied time.Time) bool {
	sf.mu.Lock()
	defer sf.mu.Unlock()
	si := &sf.check.sight
	for _, n := range sf.nodes {
		newest := si.newest[n.name]
		lease := si.sees[n.name].Sub(newest) * 18 / 10 // until it begins to end
		if !newest.After(copied) || time.Since(newest) > lease {
			return false
		}
	}
	return true
}

// vouch is an operator who finds that nothing of a service is left on any host, and confirms the death of what an older copy of the data
// still records: the host undid that, and has no note of it any more.
func (o *operator) vouch(service string) {
	o.mu.Lock()
	v := o.check.services[service]
	node := v.crumb.node
	gone := v.setBack && v.crumb.there && len(v.living) == 0 && len(o.check.effects.of(service)) == 0
	o.mu.Unlock()
	if !gone {
		return
	}
	ctx, enough := context.WithTimeout(context.Background(), o.plan.Timeout)
	defer enough()
	c, err := control.Open(ctx, o.client())
	if err != nil {
		return
	}
	defer c.Close()
	if done, err := c.Confirm(ctx, service, node, control.Confirming{By: "operator", EffectsGone: true}); err == nil && done.Done {
		o.say("operator: confirms that what %s runs on %s is dead, and undone", service, node)
		o.mu.Lock()
		o.check.tally.cover.saw("failed", "what an older copy records is confirmed dead", "standby")
		o.mu.Unlock()
	}
}

// rewound takes what is there once all data was set back.
func (c *checker) rewound(changes []zkfaults.ZnodeChange) {
	c.wiped()
	c.steps.setBack(changes)
	for _, v := range c.services {
		v.newest, v.setBack = unknownClaim, true
	}
	for _, ch := range changes {
		c.drains.changed(ch)
		service, what := splitPath(ch.Path)
		v := c.services[service]
		if node, ok := strings.CutPrefix(ch.Path, election.NodesDir(root)+"/"); ok {
			c.sessions.belongs(node, ch.Stat.EphemeralOwner)
		}
		if v == nil {
			continue
		}
		v.znodes[ch.Path] = true
		switch what {
		case "ActiveStandbyElectorLock":
			v.lock = lockView{true, ch.Stat.EphemeralOwner, ch.Stat.Czxid, activationOf(ch)}
			v.newest = v.lock.token
		case "ActiveBreadCrumb":
			c.crumbChanged(v, ch)
		case "control":
			v.orders = orders{election.ParseControl(ch.Data), ch.Stat.Version}
			v.paused = v.orders.Paused
		default:
			var m election.Member
			if node, ok := strings.CutPrefix(what, "members/"); ok && json.Unmarshal(ch.Data, &m) == nil {
				v.members[node] = m
			}
		}
	}
}
