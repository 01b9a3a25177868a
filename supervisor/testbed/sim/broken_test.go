package sim

import (
	"testing"
	"time"

	"understudy/election"
)

// A preferred node on which the program does not work takes the service away from a healthy one less and less often, and at last
// not at all.
func TestFailbackToABrokenNodeStaysPutAtLast(t *testing.T) {
	play(t, func(p *Plan) { p.Failback, p.Priority, p.Rejoin = true, []int{10, 0}, 3*time.Minute }, func(s *scene) {
		s.until(time.Minute, "n1 is active", func(v *serviceView) bool { at, runs := v.active(); return at == "n1" && runs })
		s.breaks("n1", trouble{life: 50 * time.Millisecond, code: 1})
		const hours = 2
		taken := make([]int, hours)
		before := "n1"
		for hour := range hours {
			for began := time.Now(); time.Since(began) < time.Hour; time.Sleep(100 * time.Millisecond) {
				s.see(func(v *serviceView) {
					at, _ := v.active()
					if at == "n1" && before != at {
						taken[hour]++
					}
					before = at
				})
			}
		}
		t.Logf("in each hour it took the service %v times", taken)
		if taken[0] > s.plan.Moves+2 || taken[hours-1] > 0 {
			t.Errorf("in each hour it took the service %v times", taken)
		}
		s.until(time.Minute, "n2 is active, and n1 stands by", func(v *serviceView) bool {
			at, runs := v.active()
			return at == "n2" && runs && v.members["n1"].Role == "standby" && v.members["n1"].Health == "ok"
		})
		// Once it works there again, an operator's order gives it its place back.
		s.mends()
		s.orders(func(c *election.Control, e election.Order) {
			c.Paused, c.Why = false, ""
			c.Switchover = &election.Switchover{Order: e, From: "n2", To: "n1", Deadline: time.Now().Add(time.Minute)}
		})
		s.until(10*time.Second, "n1 is active", func(v *serviceView) bool { at, runs := v.active(); return at == "n1" && runs })
		time.Sleep(s.plan.Timeout * 6) // it runs well for long enough
		s.orders(func(c *election.Control, e election.Order) {
			c.Switchover = &election.Switchover{Order: e, From: "n1", To: "n2", Deadline: time.Now().Add(time.Minute)}
		})
		s.until(time.Minute, "n2 is active", func(v *serviceView) bool { at, runs := v.active(); return at == "n2" && runs })
		s.until(time.Minute, "n1 is active and preferred again", func(v *serviceView) bool { at, runs := v.active(); return at == "n1" && runs })
	})
}

// An operator who forces a broken node to take the service does so once, and not for as long as the order is there.
func TestAForcedSwitchoverIsFollowedOnce(t *testing.T) {
	play(t, func(*Plan) {}, func(s *scene) {
		var from, to string
		s.see(func(v *serviceView) { from, _ = v.active() })
		to = map[string]string{"n1": "n2", "n2": "n1"}[from]
		s.breaks(to, trouble{absent: true})
		s.orders(func(c *election.Control, e election.Order) {
			c.Switchover = &election.Switchover{Order: e, From: from, To: to, Force: true, Deadline: time.Now().Add(time.Minute)}
		})
		s.until(20*time.Second, "it was tried there", func(v *serviceView) bool { at, _ := v.active(); return at == to })
		s.until(20*time.Second, "the former node has it again", func(v *serviceView) bool { at, runs := v.active(); return at == from && runs })
		s.see(func(v *serviceView) {
			if v.taken[to] != 1 {
				t.Errorf("it was tried there %d times", v.taken[to])
			}
		})
	})
}

// A node that rests takes the service at once when an operator forces it to, whatever it rests for.
func TestAForcedSwitchoverEndsARest(t *testing.T) {
	play(t, func(p *Plan) { p.Rejoin = time.Hour }, func(s *scene) {
		var from string
		s.see(func(v *serviceView) { from, _ = v.active() })
		s.breaks(from, trouble{life: 20 * time.Millisecond, code: 1})
		s.until(time.Minute, "it rests", func(v *serviceView) bool { return v.members[from].Role == "failed" })
		s.mends()
		var now string
		s.until(time.Minute, "the other one runs", func(v *serviceView) (runs bool) { now, runs = v.active(); return runs })
		s.orders(func(c *election.Control, e election.Order) {
			c.Switchover = &election.Switchover{Order: e, From: now, To: from, Force: true, Deadline: time.Now().Add(time.Minute)}
		})
		s.until(prompt, "it runs where it rested", func(v *serviceView) bool { at, runs := v.active(); return at == from && runs })
	})
}

// What cannot be started is never said to be well: a switchover would be reported as done.
func TestWhatCannotBeStartedIsNotSaidToBeWell(t *testing.T) {
	play(t, func(*Plan) {}, func(s *scene) {
		var from, to string
		s.see(func(v *serviceView) { from, _ = v.active() })
		to = map[string]string{"n1": "n2", "n2": "n1"}[from]
		s.breaks(to, trouble{absent: true, slow: 200 * time.Millisecond})
		s.orders(func(c *election.Control, e election.Order) {
			c.Switchover = &election.Switchover{Order: e, From: from, To: to, Deadline: time.Now().Add(time.Minute)}
		})
		tried := false
		s.until(20*time.Second, "the former node has it again", func(v *serviceView) bool {
			if m := v.members[to]; m.Role == "active" {
				if tried = true; m.Health == "ok" {
					t.Fatalf("%s says %+v", to, m)
				}
			}
			at, runs := v.active()
			return tried && at == from && runs
		})
	})
}
