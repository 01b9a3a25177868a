package sim

import (
	"sync"
	"time"
)

// unheardBy is how much too early a session has to end for it to be worth an ambush, as parts of its timeout. The earlier, the
// rarer is the chance.
var unheardBy = [...]time.Duration{20, 20, 8, 4}

// ambush cuts a node and its server off from the others between a write that this server has answered and its next word to the
// leader: of all moments the one in which a lease lasts longest beyond what the leader knows of its session.
func (lf *linkFaults) ambush(f Fault) (end func(), done bool) {
	e := lf.zk.ensemble
	lf.mu.Lock()
	session := lf.sessionOn(f.Node)
	lf.mu.Unlock()
	if e == nil || session == 0 {
		return nil, false
	}
	host := lf.nodes[f.Node].host.index
	if f.N%4 == 0 || lf.net.serverOf(host, lf.plan.all()) == e.Leader() { // another asks its followers at other times
		lf.zk.newLeader()
	}
	lf.say("%v", f)
	cancel := e.IsolateUnheard(session, lf.plan.Timeout/unheardBy[f.N/4%len(unheardBy)], func(server int, heal func()) {
		set := func(sign int) {
			for s := range lf.plan.all() {
				if s == server {
					continue
				}
				lf.net.change(host, s, func(l *link) {
					l.up.cut += sign
					l.down.cut += sign
				})
			}
		}
		undo := sync.OnceFunc(func() { lf.say("over: %v", f); heal(); set(-1) })
		set(1)
		lf.mu.Lock()
		late := lf.course.quiet || lf.course.over
		if !late {
			lf.say("zk%d is cut off with %s, and has told nobody of its last write", server+1, lf.nodes[f.Node].name)
			lf.nemesis.noteFault(f.Kind)
			lf.endLater(undo)
		}
		lf.mu.Unlock()
		if late {
			undo()
			return
		}
		time.AfterFunc(f.For, undo)
	})
	lf.mu.Lock()
	defer lf.mu.Unlock()
	lf.endLater(cancel)
	return nil, true
}

// sessionOn is the session under which something runs on a node, or 0. World.mu is held.
func (w *world) sessionOn(node int) int64 {
	for _, name := range w.plan.services() {
		if v := w.check.services[name]; v.lock.there && w.check.runsOn(name, w.nodes[node].name) {
			return v.lock.owner
		}
	}
	return 0
}
