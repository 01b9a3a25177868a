package sim

import (
	"testing"
	"time"

	"understudy/election"
)

// slowly makes the time between two starts long.
func slowly(p *Plan) { p.Backoff = 30 * time.Second }

func TestASwitchoverIsFollowedInABackOff(t *testing.T) {
	for _, order := range []election.Mode{election.Race, election.Queue} {
		t.Run(string(order), func(t *testing.T) {
			play(t, func(p *Plan) { slowly(p); p.Order = order }, func(s *scene) {
				from := s.inBackOff()
				s.orders(func(c *election.Control, e election.Order) {
					c.Switchover = &election.Switchover{Order: e, From: from, Deadline: time.Now().Add(time.Minute)}
				})
				took := s.until(time.Minute, "another node has it", func(v *serviceView) bool { node, runs := v.active(); return runs && node != from })
				if t.Logf("it took %v", took); took > prompt {
					t.Errorf("the switchover took %v", took)
				}
			})
		})
	}
}

func TestARestartIsFollowedInABackOff(t *testing.T) {
	play(t, slowly, func(s *scene) {
		node := s.inBackOff()
		s.mends()
		token := s.orders(func(c *election.Control, e election.Order) { c.Restart = &e })
		took := s.until(time.Minute, "it runs again", func(v *serviceView) bool { at, runs := v.active(); return runs && at == node })
		if t.Logf("it took %v", took); took > prompt {
			t.Errorf("the restart took %v", took)
		}
		s.until(prompt, "the order is taken back, and the lock was kept", func(v *serviceView) bool { return v.orders.Restart == nil && v.lock.czxid == token })
	})
}

// What an operator starts anew may fail as often as what was never started.
func TestARestartForgetsPreviousFailures(t *testing.T) {
	play(t, slowly, func(s *scene) {
		node := s.inBackOff()
		for range 4 { // each fails again: without the orders it would have been given up
			s.orders(func(c *election.Control, e election.Order) { c.Restart = &e })
			time.Sleep(prompt)
			s.see(func(v *serviceView) {
				if at, _ := v.active(); at != node {
					t.Fatalf("%q is active, and not %s", at, node)
				}
			})
		}
	})
}

// A program that reads its config when it starts has read it.
func TestAReloadInABackOffIsANewStart(t *testing.T) {
	play(t, slowly, func(s *scene) {
		node := s.inBackOff()
		s.mends()
		s.orders(func(c *election.Control, e election.Order) { c.Reload = &e })
		s.until(prompt, "it runs again", func(v *serviceView) bool { at, runs := v.active(); return runs && at == node })
		s.until(prompt, "the order is taken back", func(v *serviceView) bool { return v.orders.Reload == nil })
	})
}

// A pause keeps what fails from being given up; with its end it is.
func TestAResumeEndsABackOffThatAPauseMade(t *testing.T) {
	play(t, func(p *Plan) { p.Backoff = 3 * time.Second }, func(s *scene) {
		from := s.inBackOff()
		s.orders(func(c *election.Control, _ election.Order) { c.Paused = true })
		time.Sleep(3 * time.Minute) // it would have been given up by then
		s.see(func(v *serviceView) {
			if at, _ := v.active(); at != from {
				t.Fatalf("%q is active, and not %s", at, from)
			}
		})
		s.orders(func(c *election.Control, _ election.Order) { c.Paused = false })
		s.until(prompt, "another node has it", func(v *serviceView) bool { node, runs := v.active(); return runs && node != from })
	})
}

func TestStatusSaysFailingWhileNothingRuns(t *testing.T) {
	play(t, slowly, func(s *scene) {
		node := s.inBackOff()
		for _, paused := range []bool{true, false, true, false} {
			s.orders(func(c *election.Control, _ election.Order) { c.Paused = paused })
			for range 20 {
				time.Sleep(50 * time.Millisecond)
				s.see(func(v *serviceView) {
					if at, runs := v.active(); at == node && !runs && v.members[node].Health != "failing" {
						t.Fatalf("paused: %v: nothing runs, and %s says %+v", paused, node, v.members[node])
					}
				})
			}
		}
	})
}

// A preferred node that is back gets the service also while it waits for its next start elsewhere.
func TestAPreferredNodeIsNotKeptWaitingByABackOff(t *testing.T) {
	play(t, func(p *Plan) { slowly(p); p.Failback, p.Priority = true, []int{0, 10} }, func(s *scene) {
		s.until(time.Minute, "n2 is active", func(v *serviceView) bool { at, runs := v.active(); return at == "n2" && runs })
		s.mu.Lock()
		s.nodes[1].crash(true)
		s.mu.Unlock()
		s.until(time.Minute, "n1 is active", func(v *serviceView) bool { at, runs := v.active(); return at == "n1" && runs })
		s.inBackOff()
		s.mu.Lock()
		s.nodes[1].start()
		s.mu.Unlock()
		took := s.until(time.Minute, "n2 is active", func(v *serviceView) bool { at, runs := v.active(); return at == "n2" && runs })
		if t.Logf("it took %v", took); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// What is ordered while a child stops is followed when it has stopped: nothing is started only to be stopped.
func TestASwitchoverIsFollowedOnceAStopPermits(t *testing.T) {
	play(t, func(p *Plan) { p.StopTimeout = 10 * time.Second }, func(s *scene) {
		from := s.holdsOut(0)
		var starts int
		s.see(func(v *serviceView) { starts = v.runs })
		s.orders(func(c *election.Control, e election.Order) { c.Restart = &e })
		time.Sleep(2 * time.Second)
		s.orders(func(c *election.Control, e election.Order) {
			c.Switchover = &election.Switchover{Order: e, From: from, Deadline: time.Now().Add(time.Minute)}
		})
		s.until(s.plan.StopTimeout+prompt, "another node has it", func(v *serviceView) bool { node, runs := v.active(); return runs && node != from })
		s.see(func(v *serviceView) {
			if v.runs != starts+1 {
				t.Errorf("%d starts", v.runs-starts)
			}
		})
	})
}
