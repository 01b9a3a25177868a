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
func (w *world) ambush(f Fault) (end func(), done bool) {
	e := w.zk.ensemble
	w.mu.Lock()
	session := w.sessionOn(f.Node)
	w.mu.Unlock()
	if e == nil || session == 0 {
		return nil, false
	}
	host := w.nodes[f.Node].host.index
	if f.N%4 == 0 || w.net.serverOf(host, w.plan.Servers) == e.Leader() { // another asks its followers at other times
		w.zk.newLeader()
	}
	w.say("%v", f)
	cancel := e.IsolateUnheard(session, w.plan.Timeout/unheardBy[f.N/4%len(unheardBy)], func(server int, heal func()) {
		set := func(sign int) {
			for s := range w.plan.Servers {
				if s == server {
					continue
				}
				w.net.change(host, s, func(l *link) {
					l.up.cut += sign
					l.down.cut += sign
				})
			}
		}
		undo := sync.OnceFunc(func() { w.say("over: %v", f); heal(); set(-1) })
		set(1)
		w.mu.Lock()
		late := w.quiet || w.over
		if !late {
			w.say("zk%d is cut off with %s, and has told nobody of its last write", server+1, w.nodes[f.Node].name)
			w.noteFault(f.Kind)
			w.undo = append(w.undo, undo)
		}
		w.mu.Unlock()
		if late {
			undo()
			return
		}
		time.AfterFunc(f.For, undo)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.undo = append(w.undo, cancel)
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
