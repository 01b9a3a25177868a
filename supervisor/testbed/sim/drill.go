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

// drill is what operators do when all has been well for long.
type drill struct {
	*world
	drilled bool // a failback to a broken node was tried
}

// hold breaks a service's program on one node, and looks at what is said and done there.
func (dr *drill) hold() {
	r := dr.stream(fmt.Sprint("drill ", time.Since(dr.began)))
	name := pick(r, dr.plan.services()...)
	dr.mu.Lock()
	dr.course.quieten(false)
	v := dr.check.services[name]
	first := dr.favourite(name)
	dr.mu.Unlock()
	defer func() {
		dr.mu.Lock()
		defer dr.mu.Unlock()
		dr.programs.mend(name)
		dr.course.quieten(true)
	}()
	if first != "" && !dr.drilled {
		dr.drilled = true
		dr.drillFailback(name, v, first)
		return
	}
	if dr.stream(fmt.Sprint("stops ", time.Since(dr.began))).IntN(3) == 0 {
		dr.drillStop(name, v)
		return
	}
	node, ok := dr.backsOff(name, v)
	if !ok {
		return
	}
	for _, paused := range []bool{true, false} {
		if dr.operator.order(name, paused); !dr.saysFailing(v, node) {
			return
		}
	}
	dr.mu.Lock()
	now, token := v.orders, v.lock.token
	dr.mu.Unlock()
	e := election.Order{ID: fmt.Sprint("drill ", time.Since(dr.began)), Token: token, By: "operator"}
	followed := func() bool { return v.lock.token != token }
	what := pick(r, orderNames[1], orderNames[2])
	if what == orderNames[1] {
		now.Switchover = &election.Switchover{Order: e, From: node, Deadline: time.Now().Add(time.Minute)}
	} else {
		now.Restart = &e
		dr.mu.Lock()
		dr.programs.mend(name)
		dr.mu.Unlock()
		followed = func() bool { return len(v.living) > 0 }
	}
	dr.say("operator: a drill, %s of %s on %s", what, name, node)
	if !dr.operator.amend(name, now.version, now.Control) {
		return
	}
	if !dr.soon(dr.plan.heardWithin(), followed) {
		dr.violated("orders", "%s of %s was not followed within %v on %s, where nothing runs", what, name, dr.plan.heardWithin(), node)
	}
	dr.soon(dr.plan.Timeout, func() bool { return false })
	dr.operator.takeBack(name, e.ID)
}

// drillStop has a service stopped everywhere, and looks that it is, and stays so. Afterwards all that is paused is resumed.
func (dr *drill) drillStop(name string, v *serviceView) {
	dr.mu.Lock()
	runs := dr.check.running(name) && !v.paused
	dr.mu.Unlock()
	if !runs || !dr.operator.stop(name) {
		return
	}
	limit := dr.plan.stopping() + dr.plan.Timeout + dr.plan.heardWithin() + 5*time.Second
	if !dr.soon(limit, func() bool { return !v.lock.there && !dr.check.running(name) }) {
		dr.violated("orders", "%s was to be stopped, and was not within %v", name, limit)
	}
	if dr.soon(dr.plan.Timeout, func() bool { return v.lock.there }) {
		dr.violated("orders", "%s was stopped, and a node took it", name)
	}
}

// backsOff has the program fail where it is active, and waits until nothing has run there for a while.
func (dr *drill) backsOff(name string, v *serviceView) (node string, ok bool) {
	dr.mu.Lock()
	for p := range v.living {
		if p.main && v.lock.there && p.tree.session == v.lock.owner {
			node = p.tree.node
		}
	}
	if node == "" || v.paused {
		dr.mu.Unlock()
		return "", false
	}
	dr.programs.spoil(name, &trouble{life: 20 * time.Millisecond, code: 1, node: node})
	for _, p := range inOrder(v.living) {
		if p.main {
			p.kill()
		}
	}
	token := v.lock.token
	dr.mu.Unlock()
	if !dr.soon(dr.plan.heardWithin(), func() bool { return len(v.living) == 0 }) {
		return "", false
	}
	dr.soon(time.Second, func() bool { return false }) // by now that is told
	dr.mu.Lock()
	defer dr.mu.Unlock()
	return node, len(v.living) == 0 && v.lock.token == token
}

// saysFailing looks for a while whether a node that has the service, while nothing runs, says that it fails.
func (dr *drill) saysFailing(v *serviceView, node string) bool {
	bad := ""
	dr.soon(500*time.Millisecond, func() bool {
		if m := v.members[node]; len(v.living) == 0 && m.Role == "active" && m.Health != "failing" {
			bad = fmt.Sprintf("%s: %s", m.Role, m.Health)
		}
		return bad != ""
	})
	if bad != "" {
		dr.violated("status", "%s says of %s %q, and nothing runs", node, v.name, bad)
	}
	return bad == ""
}

// favourite is the node that is preferred to all others, if there is one. World.mu is held.
func (dr *drill) favourite(name string) (first string) {
	p, s := dr.plan, dr.operator.settings[name]
	if !p.Failback || p.Nodes == 1 {
		return ""
	}
	best := 0
	for _, n := range dr.nodes {
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
func (dr *drill) drillFailback(name string, v *serviceView, first string) {
	dr.mu.Lock()
	dr.programs.spoil(name, &trouble{life: 20 * time.Millisecond, code: 1, node: first})
	for _, p := range inOrder(v.living) {
		if p.main && p.tree.node == first {
			p.kill()
		}
	}
	before := v.taken[first]
	dr.mu.Unlock()
	d := 40 * (dr.plan.Rejoin + 4*dr.plan.Backoff)
	dr.idle(d)
	dr.mu.Lock()
	taken := v.taken[first] - before
	dr.mu.Unlock()
	dr.say("in %v, %s, which is broken, took %s %d times", d, first, name, taken)
	if taken > mostFailbacks {
		dr.violated("failback", "within %v, %s, where it does not work, took %s %d times", d, first, name, taken)
	}
}

// soon waits until something is seen, and tells whether it was. World.mu is held while it is looked at.
func (dr *drill) soon(limit time.Duration, seen func() bool) bool {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		dr.mu.Lock()
		yes, over := seen(), dr.check.first != nil
		dr.mu.Unlock()
		if yes || over || time.Since(began) > limit {
			return yes
		}
	}
}

// violated is checker.broken for who does not hold World.mu.
func (dr *drill) violated(promise, format string, args ...any) {
	dr.mu.Lock()
	defer dr.mu.Unlock()
	dr.check.broken(promise, format, args...)
}
