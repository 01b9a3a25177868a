package sim

import (
	"fmt"
	"time"

	"understudy/election"
)

// In one of so many seeds, operators do something when all has been well for long: what becomes of it has to be seen soon. The
// others are what they were before there were drills.
const (
	drillsIn   = 8
	drillsFrom = 6
)

// drills has a plan be one with drills: what fails there is waited for so long that an order is not to be.
func (p *Plan) drills() {
	if p.Seed%drillsIn == drillsFrom && !p.Calm {
		p.Drills, p.Backoff = true, 5*time.Second
	}
}

// heardWithin is how soon an order is followed where nothing has to be stopped.
func (p *Plan) heardWithin() time.Duration { return time.Second + p.Dying + 20*p.Latency }

// drill breaks a service's program on one node, and looks at what is said and done there.
func (w *world) drill() {
	r := w.stream(fmt.Sprint("drill ", time.Since(w.began)))
	name := pick(r, w.plan.services()...)
	w.mu.Lock()
	w.quiet = false
	v := w.check.services[name]
	first := w.favourite(name)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.trials, name)
		w.quiet = true
	}()
	if first != "" && !w.drilled {
		w.drilled = true
		w.drillFailback(name, v, first)
		return
	}
	node, ok := w.backsOff(name, v)
	if !ok {
		return
	}
	for _, paused := range []bool{true, false} {
		if w.order(name, paused); !w.saysFailing(v, node) {
			return
		}
	}
	w.mu.Lock()
	now, token := v.orders, v.lock.czxid
	w.mu.Unlock()
	e := election.Order{ID: fmt.Sprint("drill ", time.Since(w.began)), Token: token, By: "operator"}
	followed := func() bool { return v.lock.czxid != token }
	what := pick(r, orderNames[1], orderNames[2])
	if what == orderNames[1] {
		now.Switchover = &election.Switchover{Order: e, From: node, Deadline: time.Now().Add(time.Minute)}
	} else {
		now.Restart = &e
		w.mu.Lock()
		delete(w.trials, name)
		w.mu.Unlock()
		followed = func() bool { return len(v.living) > 0 }
	}
	w.say("operator: a drill, %s of %s on %s", what, name, node)
	if !w.amend(name, now.version, now.Control) {
		return
	}
	if !w.soon(w.plan.heardWithin(), followed) {
		w.violated("orders", "%s of %s was not followed within %v on %s, where nothing runs", what, name, w.plan.heardWithin(), node)
	}
	w.soon(w.plan.Timeout, func() bool { return false })
	w.takeBack(name, e.ID)
}

// backsOff has the program fail where it is active, and waits until nothing has run there for a while.
func (w *world) backsOff(name string, v *serviceView) (node string, ok bool) {
	w.mu.Lock()
	for p := range v.living {
		if p.main && v.lock.there && p.tree.session == v.lock.owner {
			node = p.tree.node
		}
	}
	if node == "" || v.paused {
		w.mu.Unlock()
		return "", false
	}
	w.trials[name] = &trouble{life: 20 * time.Millisecond, code: 1, node: node}
	for _, p := range inOrder(v.living) {
		if p.main {
			p.kill()
		}
	}
	token := v.lock.czxid
	w.mu.Unlock()
	if !w.soon(w.plan.heardWithin(), func() bool { return len(v.living) == 0 }) {
		return "", false
	}
	w.soon(time.Second, func() bool { return false }) // by now that is told
	w.mu.Lock()
	defer w.mu.Unlock()
	return node, len(v.living) == 0 && v.lock.czxid == token
}

// saysFailing looks for a while whether a node that has the service, while nothing runs, says that it fails.
func (w *world) saysFailing(v *serviceView, node string) bool {
	bad := ""
	w.soon(500*time.Millisecond, func() bool {
		if m := v.members[node]; len(v.living) == 0 && m.Role == "active" && m.Health != "failing" {
			bad = fmt.Sprintf("%s: %s", m.Role, m.Health)
		}
		return bad != ""
	})
	if bad != "" {
		w.violated("status", "%s says of %s %q, and nothing runs", node, v.name, bad)
	}
	return bad == ""
}

// favourite is the node that is preferred to all others, if there is one. World.mu is held.
func (w *world) favourite(name string) (first string) {
	p, s := w.plan, w.settings[name]
	if !p.Failback || p.Nodes == 1 {
		return ""
	}
	best := 0
	for _, n := range w.nodes {
		switch priority := s.priority[n.index]; {
		case n.index == p.Ineligible:
		case priority > best:
			best, first = priority, n.name
		case priority == best:
			first = ""
		}
	}
	return first
}

// mostFailbacks is how often a broken node may take a service away from a healthy one in any time that a drill lasts.
const mostFailbacks = 10

// drillFailback has the program fail for long on the node that is preferred.
func (w *world) drillFailback(name string, v *serviceView, first string) {
	w.mu.Lock()
	w.trials[name] = &trouble{life: 20 * time.Millisecond, code: 1, node: first}
	for _, p := range inOrder(v.living) {
		if p.main && p.tree.node == first {
			p.kill()
		}
	}
	before := v.taken[first]
	w.mu.Unlock()
	d := 40 * (w.plan.Rejoin + 4*w.plan.Backoff)
	w.idle(d)
	w.mu.Lock()
	taken := v.taken[first] - before
	w.mu.Unlock()
	w.say("in %v, %s, which is broken, took %s %d times", d, first, name, taken)
	if taken > mostFailbacks {
		w.violated("failback", "within %v, %s, where it does not work, took %s %d times", d, first, name, taken)
	}
}

// soon waits until something is seen, and tells whether it was. World.mu is held while it is looked at.
func (w *world) soon(limit time.Duration, seen func() bool) bool {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		w.mu.Lock()
		yes, over := seen(), w.check.first != nil
		w.mu.Unlock()
		if yes || over || time.Since(began) > limit {
			return yes
		}
	}
}

// violated is checker.broken for who does not hold World.mu.
func (w *world) violated(promise, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check.broken(promise, format, args...)
}
