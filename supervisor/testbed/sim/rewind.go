package sim

import (
	"encoding/json"
	"math/rand/v2"
	"strings"

	"understudy/election"
	"understudy/election/zkmem"
)

// In one of so many seeds with one server alone, an operator sets all data back to an older copy.
const (
	rewindsIn   = 4
	rewindsFrom = 3
)

// Not where strangers keep sessions: those that operators have ended would come back, and be kept.
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
	backup, epoch := server.Backup(), server.Zxid()>>32
	sf.mu.Lock()
	n := sf.nodes[f.Node]
	if inc := n.inc; inc != nil {
		inc.asked = true
		go inc.stop()
		sf.after(f.For/4, n.comeBack)
	}
	sf.mu.Unlock()
	return func() {
		if !sf.mayWipe() {
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
		if f.N%2 == 0 { // as an ensemble does that is started with the copy: its changes are newer than all that was seen
			server.ElectLeader()
		}
	}, true
}

// rewound takes what is there once all data was set back.
func (c *checker) rewound(changes []zkmem.Change) {
	for _, v := range c.services {
		v.overwritten = v.crumb
	}
	c.wiped()
	for _, v := range c.services {
		v.newest = unknownClaim
	}
	for _, ch := range changes {
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
