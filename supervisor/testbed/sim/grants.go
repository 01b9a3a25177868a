package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"understudy/election"
	"understudy/election/jute"
)

// Servers that grant sessions another timeout than before: an ensemble that is restarted, server by server, with other bounds.

// In one of so many seeds servers do that, beside all that happens there anyway: so the others are what they were before.
const (
	regrantsIn   = 5
	regrantsFrom = 2
)

// grants draws what servers grant, and adds their restarts to the episodes that are drawn.
func (p *Plan) grants() {
	p.Asked, p.Least = p.Timeout, p.Timeout
	if p.Seed%regrantsIn != regrantsFrom {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 4))
	p.Regrants = true
	p.Tick = p.Timeout / pick[time.Duration](r, 10, 20, 40)
	part := pick(r, 1.5, 2, 3, 5)
	if p.Calm { // what is short enough not to be noticed is so in the shortest session
		p.Asked = time.Duration(float64(p.Timeout) * part * 2).Round(100 * time.Millisecond)
	} else {
		least := 1500 * time.Millisecond
		if p.Watchdog == watchdogRequired { // nothing runs in a session that is too short for one
			least = 3 * time.Second
		}
		p.Least = max(time.Duration(float64(p.Timeout)/part), least).Round(100 * time.Millisecond)
		if r.IntN(2) == 0 {
			p.Floor = p.Least
		}
	}
	for i := range p.Episodes {
		e := &p.Episodes[i]
		if p.Calm {
			for n := range e.Faults {
				if e.Faults[n].Kind == RestartServer && r.IntN(3) > 0 {
					e.Faults[n].Kind = RegrantSessions
				}
			}
			continue
		}
		for range r.IntN(4) {
			f := p.fault(r, RegrantSessions)
			f.At, f.For = drawn(r, e.Length), drawn(r, p.Timeout/5)
			e.Faults = append(e.Faults, f)
		}
		sortFaults(e.Faults)
	}
}

// longest is the longest timeout that a session may have.
func (p *Plan) longest() time.Duration {
	if p.Regrants {
		return p.Asked * 3 / 2
	}
	return p.Timeout
}

// grant is what servers grant from then on, to whoever asks for what they granted before, or for the config's.
func (p *Plan) grant(f Fault) (shortest, longest time.Duration) {
	switch f.N % 6 {
	case 0, 1, 2:
		return 2 * p.Tick, p.Least
	case 3:
		return 2 * p.Tick, p.Least + (p.Asked-p.Least)*time.Duration(f.N/8%8)/8
	case 4:
		return p.longest(), p.longest()
	}
	return 2 * p.Tick, p.longest()
}

// What is done to the node that is active when it has just been granted less.
const (
	thenNothing = iota
	thenFrozen
	thenCut
	regrantTwists
)

func (f Fault) twist() int { return f.N / 64 % regrantTwists }

// regrant restarts servers that grant something else then.
func (sf *serverFaults) regrant(f Fault) (end func(), done bool) {
	if !sf.plan.Regrants {
		return nil, false
	}
	shortest, longest := sf.plan.grant(f)
	sf.say("%v: they grant %v to %v", f, shortest, longest)
	for _, s := range sf.zk.some(f.Server) {
		s.Down()
		s.SetBounds(shortest, longest)
	}
	if f.twist() != thenNothing && !sf.plan.Calm {
		sf.mu.Lock()
		sf.check.bounds.await(f)
		sf.mu.Unlock()
	}
	return func() {
		sf.say("over: %v", f)
		for _, s := range sf.zk.some(f.Server) {
			s.Up()
		}
	}, true
}

// granting is what is known of a session's timeout.
type granting struct {
	node    *node
	counted time.Duration // the shortest that its supervisor has read of
	unread  []grant       // what servers have granted, and it has not read of
}

type grant struct {
	by      *stream // of the answer
	timeout time.Duration
}

// granted is told by a server what a session that has come back has from now on.
func (w *world) granted(c net.Conn, session int64, timeout time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g := w.check.bounds.grants[session]
	if g == nil {
		return
	}
	g.unread = append(g.unread, grant{c.(*conn).out, timeout})
	if timeout < g.counted && w.plan.Floor > 0 && w.check.runsAny(g.node) { // then it need not be read
		if f, ok := w.check.bounds.regranted(); ok && f.twist() == thenCut {
			w.say("%s does not read that session %s is granted %v", g.node.name, election.SessionName(session), timeout)
			w.nemesis.links.cutFor(Fault{Kind: CutLink, Node: g.node.index, Server: -1, For: w.plan.longest()})
		}
	}
}

// boundsView is what servers have granted sessions.
type boundsView struct {
	*checker
	grants   map[int64]*granting
	regrants []Fault // that wait for a node to be granted less
}

// counted is the timeout that a session's supervisor counts with.
func (bv *boundsView) counted(session int64) time.Duration {
	if g := bv.grants[session]; g != nil {
		return election.Counted(g.counted, bv.w.plan.Floor)
	}
	return bv.w.plan.Timeout
}

// alike tells whether sessions are so alike that all nodes notice an ensemble's loss before the first of them has to end what it runs.
func (bv *boundsView) alike() bool {
	shortest, longest := time.Duration(math.MaxInt64), time.Duration(0)
	for _, session := range bv.sessions.of {
		t := bv.counted(session)
		shortest, longest = min(shortest, t), max(longest, t)
	}
	return longest <= shortest*5/4
}

// await keeps what is to happen to the next node that is granted less.
func (bv *boundsView) await(f Fault) { bv.regrants = append(bv.regrants, f) }

// regranted is what is to happen to a node that is granted less.
func (bv *boundsView) regranted() (f Fault, ok bool) {
	if len(bv.regrants) == 0 || bv.w.course.quiet || bv.w.course.over {
		return f, false
	}
	f, bv.regrants = bv.regrants[0], bv.regrants[1:]
	return f, true
}

// runsAny tells whether any service runs on a node.
func (c *checker) runsAny(n *node) bool {
	return slices.ContainsFunc(c.w.plan.services(), func(s string) bool { return c.runsOn(s, n.name) })
}

// read is told what a supervisor reads of it. World.mu is held.
func (bv *boundsView) read(n *node, by *stream, hello jute.ConnectResponse) {
	timeout := time.Duration(hello.Timeout) * time.Millisecond
	g := bv.grants[hello.SessionID]
	switch {
	case hello.SessionID == 0:
		return
	case g == nil:
		bv.grants[hello.SessionID] = &granting{node: n, counted: timeout}
		return
	}
	i := slices.IndexFunc(g.unread, func(u grant) bool { return u.by == by })
	g.unread = g.unread[i+1:] // a session has what it was granted last
	if timeout >= g.counted {
		return
	}
	g.counted = timeout
	bv.w.say("%s: session %s is granted %v", n.name, election.SessionName(hello.SessionID), timeout)
	if n.inc == nil || !bv.runsAny(n) {
		return
	}
	f, ok := bv.regranted()
	if !ok {
		return
	}
	inc := n.inc
	bv.w.after(time.Duration(f.N/256%16)*timeout/64, func() {
		if n.inc != inc || bv.w.course.quiet {
			return
		}
		if f.twist() == thenCut {
			bv.w.nemesis.links.cutFor(Fault{Kind: CutLink, Node: n.index, Server: -1, For: bv.w.plan.longest()})
		} else if inc.mayLose(1) {
			inc.halt(bv.w.plan.longest())
		}
	})
}

// cutShort tells whether a session may be over before its lease, and nobody can be blamed: a server has granted it so little that
// only knowing of it helps, nobody says how little servers grant at least, and the answer was not read.
func (bv *boundsView) cutShort(session int64) bool {
	g := bv.grants[session]
	return g != nil && bv.w.plan.Floor == 0 && slices.ContainsFunc(g.unread, func(u grant) bool { return u.timeout < g.counted*7/12 })
}

func (p *Plan) grantWords() string {
	if !p.Regrants {
		return ""
	}
	return fmt.Sprintf(", asks for %v, granted %v and more, floor %v", p.Asked, p.Least, p.Floor)
}
