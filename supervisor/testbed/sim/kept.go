package sim

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"understudy/election"
	"understudy/election/jute"
	"understudy/election/zkmem"
)

// Sessions that outlast their supervisors: a stranger attaches to one and keeps it alive, or the servers forget to delete its
// znodes. In one of so many seeds there are such.
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
		f := Fault{Kind: pick(r, KeepSession, KeepSession, LeaveZnodes), Node: r.IntN(p.Nodes), Active: r.IntN(4) > 0, Server: -1, N: r.IntN(1 << 16),
			At: drawn(r, e.Length), For: drawn(r, 6*p.Timeout)}
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

// haunt has the session of a node outlast it.
func (st *stranger) haunt(f Fault) (end func(), done bool) {
	st.mu.Lock()
	session := st.check.nodes.session[st.nodes[f.Node].name]
	st.mu.Unlock()
	if session == 0 || f.Kind == LeaveZnodes && !st.zk.servers[0].LeaveZnodes(session) {
		return nil, false
	}
	st.say("%v: session %s", f, election.SessionName(session))
	if f.Kind == KeepSession {
		st.kept = append(st.kept, st.zk.servers[0].Keep(session))
	}
	f.Kind = f.silencedBy()
	end, _ = st.nemesis.begin(f)
	return end, true
}

// unhaunt ends the keeping of sessions. It is not healed with the rest: P6 holds while a stranger is there.
func (st *stranger) unhaunt() {
	for _, end := range st.kept {
		end()
	}
	st.kept = nil
}

// nodesView is the supervisors' own znodes, as the checker sees them.
type nodesView struct {
	*checker
	session map[string]int64        // by node
	beat    map[int64]time.Time     // by session: its newest heartbeat that was carried out
	beats   map[int64]int           // by session: how many there were, but for the making of its znode
	heard   map[string]time.Time    // by node: when its newest write was sent that was answered
	deaf    map[string]time.Time    // by node: when that was last longer ago than a quarter of a session
	told    map[int64]time.Duration // by session: the timeout that it says it was granted
	heir    map[int64]int64         // who has taken a session's place under the name of its node: that one has waited for it
}

func newNodesView(c *checker) nodesView {
	return nodesView{checker: c, session: map[string]int64{}, beat: map[int64]time.Time{}, beats: map[int64]int{}, heard: map[string]time.Time{}, deaf: map[string]time.Time{}, heir: map[int64]int64{}, told: map[int64]time.Duration{}}
}

// nodeChanged looks at who deletes a supervisor's znode.
func (nv *nodesView) nodeChanged(t zkmem.Commit, ch zkmem.Change) {
	name, ok := strings.CutPrefix(ch.Path, election.NodesDir(root)+"/")
	if !ok {
		return
	}
	former := nv.session[name]
	if ch.Kind == jute.EventNodeDeleted {
		if t.Ended == 0 && t.By != former && nv.hand.byHand[ch.Path] == 0 {
			if nv.beats[former] > 0 { // else it may be taken for the stale one that it has just replaced, and is made again with its first heartbeat
				nv.silent(name, former, "znode of its supervisor")
			}
			nv.heir[former] = t.By
		}
		delete(nv.session, name)
		return
	}
	nv.session[name] = ch.Stat.EphemeralOwner
	if ch.Kind == jute.EventNodeCreated {
		nv.answered(name, time.Now())
	}
	if t.By == ch.Stat.EphemeralOwner {
		nv.beat[t.By] = time.Now()
		if ch.Kind != jute.EventNodeCreated {
			nv.beats[t.By]++
		}
		var says election.Node
		if json.Unmarshal(ch.Data, &says) == nil {
			timeout := time.Duration(says.SessionMs) * time.Millisecond
			if least, ok := nv.told[t.By]; ok {
				timeout = min(timeout, least) // a longer grant is told, and never counts
			}
			nv.told[t.By] = timeout
		}
	}
}

// answered is told that a node has the answer to a heartbeat. World.mu is held.
func (nv *nodesView) answered(node string, sent time.Time) {
	if time.Since(nv.heard[node]) > nv.w.plan.longest()*101/400 {
		nv.deaf[node] = time.Now()
	}
	if sent.After(nv.heard[node]) {
		nv.heard[node] = sent
	}
}

// takenAway tells whether a lock was deleted by a node in place of its owner. That owner has to have been silent for two
// session timeouts, and the node to have been heard all the while.
func (nv *nodesView) takenAway(v *serviceView, t zkmem.Commit, ch zkmem.Change) bool {
	if ch.Kind != jute.EventNodeDeleted || t.Ended != 0 || t.By == v.lock.owner || nv.hand.byHand[ch.Path] > 0 {
		return false
	}
	for _, n := range nv.w.nodes {
		if nv.session[n.name] != t.By {
			continue
		}
		nv.silent(n.name, v.lock.owner, "lock of "+v.name)
		if deaf := time.Since(nv.deaf[n.name]); deaf < nv.twice(v.lock.owner) && t.By != nv.heir[v.lock.owner] {
			nv.broken("stale", "%s took the lock of %s away, but was itself not heard %v ago", n.name, v.name, deaf)
		}
		return true
	}
	return false
}

// silent demands that nothing was heard of a session for two session timeouts, by clocks that go wrong.
func (nv *nodesView) silent(by string, session int64, what string) {
	if heard := time.Since(nv.beat[session]); heard < nv.twice(session) {
		nv.broken("stale", "%s deleted the %s, of session %s, %v after its newest heartbeat", by, what, election.SessionName(session), heard)
	}
}

// twice is two of a session's timeouts, the shortest that it told of itself, by a clock that goes wrong. Where what it was granted is
// more than it may count with, its breadcrumb tells the lesser, and is all that there is when its own znode was deleted by hand.
func (nv *nodesView) twice(session int64) time.Duration {
	return election.Counted(nv.told[session], nv.w.plan.Floor) * 2 * 997 / 1000
}
