package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/fencing"
)

// scene is a small world in which a test acts: two nodes, one server, and one service, s1, that runs. Nothing fails by itself.
type scene struct {
	*testing.T
	*world
}

// play makes a scene in virtual time.
func play(t *testing.T, change func(*Plan), act func(*scene)) {
	p := &Plan{
		Seed: 1, Nodes: 2, Hosts: 2, Services: 1, Servers: 1, SyncLimit: 5, Timeout: 6 * time.Second, Tick: 500 * time.Millisecond,
		Order: election.Race, Fencing: fencing.Grace, Grace: 2 * time.Second, StopTimeout: 100 * time.Millisecond, Rejoin: 10 * time.Second,
		Priority: []int{0, 0}, Ineligible: -1, Programs: 1, Failsafe: []bool{false}, Moves: 5,
	}
	change(p)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(p)
		s := &scene{t, w}
		defer func() {
			if t.Failed() {
				t.Log(w.trace.last(80))
			}
		}()
		defer w.course.end()
		w.mu.Lock()
		for _, n := range w.nodes {
			n.start()
		}
		w.mu.Unlock()
		w.course.progress(&Result{})
		s.until(time.Minute, "all stand", func(v *serviceView) bool { return len(v.members) == p.Nodes })
		w.mu.Lock()
		w.course.quieten(false)
		w.mu.Unlock()
		act(s)
		if w.check.first != nil {
			t.Error(w.check.first)
		}
	})
}

// see looks at the service.
func (s *scene) see(look func(v *serviceView)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look(s.check.services["s1"])
}

// until waits for what is to be seen, and returns how long that took.
func (s *scene) until(limit time.Duration, what string, seen func(v *serviceView) bool) time.Duration {
	s.Helper()
	began := time.Now()
	for {
		synctest.Wait()
		yes := false
		s.see(func(v *serviceView) { yes = seen(v) })
		if took := time.Since(began); yes {
			return took
		} else if took > limit {
			s.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// active is the node that says that it is active, and whether anything runs there.
func (v *serviceView) active() (node string, runs bool) {
	for name, m := range v.members {
		if m.Role == "active" {
			node = name
		}
	}
	for p := range v.living {
		runs = runs || p.main && !p.killed && p.tree.node == node
	}
	return node, runs
}

// breaks has the service's program end soon after each start, on a node or, with "", everywhere.
func (s *scene) breaks(node string, how trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how.node = node
	s.programs.spoil("s1", &how)
	for _, p := range inOrder(s.check.services["s1"].living) {
		if p.main && (node == "" || p.tree.node == node) {
			p.kill()
		}
	}
}

// mends ends that.
func (s *scene) mends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.programs.mend("s1")
}

// orders changes what operators want, and returns the activation that is meant.
func (s *scene) orders(change func(c *election.Control, e election.Order)) (token int64) {
	s.Helper()
	var now orders
	s.see(func(v *serviceView) { now, token = v.orders, v.lock.czxid })
	change(&now.Control, election.Order{ID: time.Now().String(), Token: token, By: "operator"})
	if !s.operator.amend("s1", now.version, now.Control) {
		s.Fatal("the order is not written")
	}
	return token
}

// inBackOff has the active node's program crash until the node waits long before the next start, and says which node that is.
func (s *scene) inBackOff() (node string) {
	s.Helper()
	s.see(func(v *serviceView) { node, _ = v.active() })
	s.breaks(node, trouble{life: 20 * time.Millisecond, code: 1})
	s.until(time.Minute, "nothing runs for a second", func() func(v *serviceView) bool {
		since := time.Now()
		return func(v *serviceView) bool {
			if at, runs := v.active(); at != node {
				s.Fatalf("%q is active, and not %s", at, node)
			} else if runs {
				since = time.Now()
			}
			return time.Since(since) > time.Second
		}
	}())
	return node
}

// prompt is how soon an order is to be followed, besides what a stop and a start take.
const prompt = time.Second
