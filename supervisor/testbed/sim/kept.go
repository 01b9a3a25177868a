package sim

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/election/jute"
	"understudy/election/zkmem"
	"understudy/supervisor/control"
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
		if r.IntN(2) == 0 { // until an operator has acted, and another node has taken over
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
		st.operator.relieve()
		if silenced != nil {
			silenced()
		}
	}, true
}

// unhaunt ends the keeping of sessions. It is not healed with the rest: P6 holds while a stranger is there, and an operator acts.
func (st *stranger) unhaunt() {
	for _, k := range st.kept {
		k.end()
	}
	st.kept = nil
}

// haunts tells whether a session is kept.
func (st *stranger) haunts() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.ContainsFunc(st.kept, func(k keeping) bool { return !st.check.sessions.over[k.session] })
}

// relieve is an operator who reads the status and deletes what it names. It tells whether that is nothing.
func (o *operator) relieve() (nothing bool) {
	ctx, enough := context.WithTimeout(context.Background(), o.plan.Timeout)
	defer enough()
	c, err := control.Open(ctx, o.client())
	if err != nil {
		return false
	}
	s, err := c.Status(ctx)
	c.Close()
	var paths []string
	for _, v := range s.Services {
		for _, k := range v.Kept {
			paths = append(paths, k.Path)
		}
	}
	for _, n := range s.Nodes {
		if strings.Contains(strings.Join(n.Warnings, " "), "no heartbeat") {
			paths = append(paths, election.NodesDir(root)+"/"+n.Node)
		}
	}
	for _, path := range paths {
		o.operate(path)
	}
	return err == nil && len(paths) == 0
}

func (o *operator) client() election.Config {
	return election.Config{Servers: o.plan.servers(), Root: root, Timeout: o.plan.Timeout, Logger: hclog.NewNullLogger(), Dial: o.dial}
}

// dial is the operator's way to ZooKeeper, which no fault touches.
func (o *operator) dial(_ context.Context, address string) (net.Conn, error) {
	ours, theirs := o.net.local()
	o.serve(serverOf(address), theirs)
	return ours, nil
}

// robbed looks at who deletes a lock: no node does that to another session's.
func (c *checker) robbed(v *serviceView, t zkmem.Commit, ch zkmem.ZnodeChange) {
	if ch.Kind == jute.EventNodeDeleted && t.Ended == 0 && t.By != v.lock.owner && c.hand.byHand[ch.Path] == 0 {
		c.broken("lock", "session %s deleted the lock of %s, which belonged to session %s", election.SessionName(t.By), v.name, election.SessionName(v.lock.owner))
	}
}
