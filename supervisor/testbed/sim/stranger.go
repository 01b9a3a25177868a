package sim

import (
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"understudy/election"
	"understudy/election/jute"
	"understudy/election/zkmem"
)

// Strangers are clients without credentials. ZooKeeper lets them attach to any session: its id is in the Stat of its znodes, and
// its password follows from the id. They end sessions, or have them run out early.

const strangersIn = 3 // in one of so many seeds

// strangers draws whether they reach the servers, and adds what they do to the episodes that are drawn: in a stream of its own,
// so that other seeds are what they were.
func (p *Plan) strangers() {
	r := rand.New(rand.NewPCG(p.Seed, 13))
	if p.Calm || r.IntN(strangersIn) > 0 { // that a session is over, everybody notices
		return
	}
	p.Strangers = true
	for i := range p.Episodes {
		e := &p.Episodes[i]
		for range r.IntN(3) {
			f := p.fault(r, EndSession)
			f.At, f.Active, f.For = drawn(r, e.Length), r.IntN(4) > 0, p.Timeout/4+drawn(r, p.Timeout)
			e.Length = max(e.Length, f.At+f.For)
			e.Faults = append(e.Faults, f)
		}
		sortFaults(e.Faults)
	}
}

// delay is what P6 allows a takeover without a proof, from the moment that the lock is free. It may be free before a lease is over.
func (p *Plan) delay() time.Duration {
	if !p.Strangers && !p.Regrants {
		return p.Grace
	}
	return p.Grace + p.Timeout*6/5
}

// What makes the end of a session a danger: its node does not learn of it, and still has a lease.
const (
	aware = iota
	cutOff
	frozen
	plights
)

var plightNames = [...]string{"it knows at once", "it is cut off", "its supervisor is frozen"}

func (f Fault) plight() int { return f.N % plights }

// shortens tells whether the session is not closed, but has to run out before its time.
func (f Fault) shortens() bool { return f.N/4%4 == 0 }

func (f Fault) stranger() string {
	how := "closed"
	if f.shortens() {
		how = "granted less"
	}
	return fmt.Sprintf("%s, %s", how, plightNames[f.plight()])
}

// meddle has a stranger end a session of a node, at once or a little after the node has lost touch.
func (st *stranger) meddle(f Fault) (end func(), done bool) {
	st.mu.Lock()
	n := st.nodes[f.Node]
	session := st.check.sessions.of[n.name]
	if session == 0 { // its znode was deleted by hand: the lock tells as well
		session = st.sessionOn(f.Node)
	}
	if session == 0 || st.course.over {
		st.mu.Unlock()
		return nil, false
	}
	st.say("%v", f)
	wait := st.plan.Timeout * time.Duration(f.N/16%50) / 100
	switch {
	case f.plight() == cutOff:
		st.nemesis.links.cutFor(Fault{Kind: CutLink, Node: f.Node, Server: -1, Way: cutBoth, For: f.For})
	case f.plight() == frozen && n.inc != nil && n.inc.running() && n.inc.mayLose(1):
		n.inc.halt(f.For)
	default:
		wait = 0
	}
	st.mu.Unlock()
	if wait == 0 {
		return nil, st.endSession(session, f.shortens())
	}
	time.AfterFunc(wait, func() { st.endSession(session, f.shortens()) })
	return nil, true
}

// endSession attaches to a session and closes it, or leaves it with the shortest timeout that servers grant. It may reach the
// servers though nobody else does, and it may be carried out though it is not answered.
func (st *stranger) endSession(session int64, shorten bool) (done bool) {
	st.mu.Lock()
	late := st.course.quiet || st.course.over || st.check.sessions.over[session] || !st.check.crumbed(session)
	if !late {
		st.say("stranger: attaches to session %s", election.SessionName(session))
		st.check.sessions.meddle(session)
	}
	st.mu.Unlock()
	if late {
		return false
	}
	for n := range st.zk.servers {
		ours, theirs := st.net.local()
		st.serve(n, theirs)
		err := attach(ours, session, shorten)
		_ = ours.Close()
		if err == nil {
			return true
		}
	}
	return false
}

func attach(c net.Conn, session int64, shorten bool) error {
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := c.Write(jute.Frame(jute.ConnectRequest{Timeout: 1, SessionID: session, Password: zkmem.Password(session)})); err != nil {
		return err
	}
	frame, err := jute.ReadFrame(c, 0)
	if err != nil {
		return fmt.Errorf("stranger: %w", err)
	}
	var greeting jute.ConnectResponse
	if err := jute.Unmarshal(frame, &greeting); err != nil || greeting.SessionID == 0 || shorten {
		return err
	}
	if _, err := c.Write(jute.Frame(jute.RequestHeader{Xid: 1, Op: jute.OpCloseSession})); err != nil {
		return err
	}
	_, err = jute.ReadFrame(c, 0)
	return err
}

// crumbed tells whether each lock that a session has stands beside a breadcrumb. Where an operator has deleted that, the lock is
// all that tells of who runs: to end the session then is to delete both, see mayStrike.
func (c *checker) crumbed(session int64) bool {
	for _, v := range c.services {
		if v.lock.there && v.lock.owner == session && !v.crumb.there {
			return false
		}
	}
	return true
}
