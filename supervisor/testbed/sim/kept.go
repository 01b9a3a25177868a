package sim

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/election/jute"
	"understudy/supervisor/testbed/zkfaults"
)

// Sessions that outlast their supervisors: a stranger attaches to one and keeps it alive. In one of so many seeds there are such.
const (
	hauntedIn   = 5
	hauntedFrom = 3
)

func (p *Plan) haunted() bool { return p.Seed%hauntedIn == hauntedFrom && !p.Calm }

// keepers adds such faults to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) keepers() {
	if !p.haunted() {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 3))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		if r.IntN(3) == 0 {
			continue
		}
		f := Fault{Kind: KeepSession, Node: r.IntN(p.Nodes), Active: r.IntN(4) > 0, Server: -1, N: r.IntN(1 << 16), At: drawn(r, e.Length), For: drawn(r, 6*p.Timeout)}
		if r.IntN(2) == 0 { // until another node has taken over
			f.For += 5 * p.Timeout
			e.Length = max(e.Length, f.At+f.For)
		}
		e.Faults = append(e.Faults, f)
		sortFaults(e.Faults)
	}
}

// silencedBy is what keeps the supervisor from going on with the session.
func (f Fault) silencedBy() Kind {
	return []Kind{PowerOff, PowerOff, CutLink, FreezeSupervisor}[f.N%4]
}

// keeping is of a session that a stranger keeps alive.
type keeping struct {
	session int64
	end     func()
}

// haunt has the session of a node outlast it.
func (st *stranger) haunt(f Fault) (end func(), done bool) {
	st.mu.Lock()
	session := st.check.sessions.of[st.nodes[f.Node].name]
	st.mu.Unlock()
	if session == 0 {
		return nil, false
	}
	st.say("%v: session %s", f, election.SessionName(session))
	st.kept = append(st.kept, keeping{session, st.zk.servers[0].Keep(session)})
	f.Kind = f.silencedBy()
	silenced, _ := st.nemesis.begin(f)
	return func() {
		if silenced != nil {
			silenced()
		}
	}, true
}

// unhaunt ends the keeping of sessions. It is not healed with the rest: P6 holds while a stranger is there.
func (st *stranger) unhaunt() {
	for _, k := range st.kept {
		k.end()
	}
	st.kept = nil
}

func (o *operator) client() election.Config {
	return election.Config{Servers: o.plan.servers(), Root: root, Lease: o.plan.Timeout / 2, Logger: hclog.NewNullLogger(), Dial: o.dial}
}

// dial is the operator's way to ZooKeeper, which no fault touches.
func (o *operator) dial(_ context.Context, address string) (net.Conn, error) {
	ours, theirs := o.net.local()
	o.serve(serverOf(address), theirs)
	return ours, nil
}

// robbed looks at who deletes a lock: no node does that to another session's, unless that one's lease is over, by its node's own clock. It
// tells whether one has done it.
func (c *checker) robbed(v *serviceView, t zkfaults.Commit, ch zkfaults.ZnodeChange) bool {
	if ch.Kind != jute.EventNodeDeleted || t.Ended != 0 || t.By == v.lock.owner || c.hand.byHand[ch.Path] > 0 {
		return false
	}
	c.w.say("zk: session %s vacates the lock of %s", election.SessionName(t.By), v.name)
	c.effects.expired[v.lock.owner] = true
	for _, n := range c.w.nodes {
		if seen := c.sight.leases[n.name]; seen.session == v.lock.owner && time.Now().Before(seen.until) && n.holds(seen.session) {
			c.broken("P3", "session %s deleted the lock of %s, which belongs to session %s, whose lease on %s lasts for another %v",
				election.SessionName(t.By), v.name, election.SessionName(v.lock.owner), n.name, time.Until(seen.until))
		}
	}
	return true
}
