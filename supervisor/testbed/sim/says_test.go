package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/election"
	"understudy/fencing"
)

// holdsOut has what runs ignore that it is asked to end, and take so long to die when it is killed.
func (s *scene) holdsOut(dies time.Duration) (node string) {
	s.see(func(v *serviceView) {
		node, _ = v.active()
		for p := range v.living {
			p.nature.ignoresTERM, p.nature.dies = true, dies
		}
	})
	return node
}

func (s *scene) node(name string) *node { return s.nodes[s.indexOf(name)] }

// says waits until a node says that it is so.
func (s *scene) says(node, role, health, why string) {
	s.Helper()
	s.until(prompt, node+" says "+role+", "+health+", "+why, func(v *serviceView) bool {
		m := v.members[node]
		return string(m.Role) == role && string(m.Health) == health && strings.Contains(m.Why, why)
	})
}

func TestANodeThatIsAskedToStopSaysSo(t *testing.T) {
	play(t, func(p *Plan) { p.StopTimeout = 20 * time.Second }, func(s *scene) {
		name := s.holdsOut(0)
		s.mu.Lock()
		s.node(name).inc.asked = true
		s.node(name).inc.stop()
		s.mu.Unlock()
		s.says(name, "stopping", "ok", "stop asked")
	})
}

func TestANodeWhoseTreeIsNotProvedDeadSaysSo(t *testing.T) {
	t.Run("in a restart", func(t *testing.T) {
		play(t, func(*Plan) {}, func(s *scene) {
			name := s.holdsOut(40 * time.Second)
			s.orders(func(c *election.Control, e election.Order) { c.Restart = &e })
			time.Sleep(6 * time.Second) // of which the supervisor gives the first attempt five
			s.says(name, "active", "failing", "not proved dead")
			s.until(time.Minute, "it runs and says so", func(v *serviceView) bool {
				at, runs := v.active()
				return runs && at == name && v.members[name].Health == "ok" && v.members[name].Why == ""
			})
		})
	})
	t.Run("when it is asked to stop", func(t *testing.T) {
		play(t, func(*Plan) {}, func(s *scene) {
			name := s.holdsOut(20 * time.Second)
			s.mu.Lock()
			s.node(name).inc.asked = true
			s.node(name).inc.stop()
			s.mu.Unlock()
			time.Sleep(6 * time.Second)
			s.says(name, "stopping", "failing", "not proved dead")
		})
	})
	t.Run("at the end of a term", func(t *testing.T) {
		play(t, func(*Plan) {}, func(s *scene) {
			name := s.holdsOut(40 * time.Second)
			s.orders(func(c *election.Control, e election.Order) {
				c.Switchover = &election.Switchover{Order: e, From: name, Deadline: time.Now().Add(time.Minute)}
			})
			time.Sleep(6 * time.Second)
			s.says(name, "stopping", "failing", "not proved dead")
			s.until(time.Minute, "it stands by and says nothing of it", func(v *serviceView) bool {
				m := v.members[name]
				return m.Role == "standby" && m.Health == "ok" && m.Why == ""
			})
		})
	})
}

// Nobody is promoted once a service is paused: not even the node that has the lock, and is fencing.
func TestAPauseIsHeardWhileFencing(t *testing.T) {
	play(t, func(p *Plan) { p.Grace = time.Minute }, func(s *scene) {
		var from, to string
		s.see(func(v *serviceView) { from, _ = v.active() })
		to = map[string]string{"n1": "n2", "n2": "n1"}[from]
		s.mu.Lock()
		s.node(from).host.powerOff()
		s.mu.Unlock()
		s.until(time.Minute, to+" is fencing", func(v *serviceView) bool { return v.members[to].Role == "fencing" })
		s.orders(func(c *election.Control, _ election.Order) { c.Paused = true })
		s.until(prompt, "it is paused, and the breadcrumb stays", func(v *serviceView) bool {
			return v.members[to].Role == "paused" && !v.lock.there && v.crumb.there
		})
		s.orders(func(c *election.Control, _ election.Order) { c.Paused = false })
		took := s.until(2*time.Minute, "it runs", func(v *serviceView) bool { at, runs := v.active(); return at == to && runs })
		if took < s.plan.Grace {
			t.Errorf("it ran after %v: the former active was not waited for", took)
		}
	})
}

// What a refused fencing is waited for is not all that ends the rest.
func TestAForcedSwitchoverEndsARestAfterARefusal(t *testing.T) {
	play(t, func(p *Plan) { p.Fencing, p.Stonith, p.Rejoin = fencing.Refuse, true, time.Hour }, func(s *scene) {
		var from, to string
		s.see(func(v *serviceView) { from, _ = v.active() })
		to = map[string]string{"n1": "n2", "n2": "n1"}[from]
		s.mu.Lock()
		s.nemesis.hosts.unfenced = true
		s.node(from).host.powerOff()
		s.mu.Unlock()
		s.until(time.Minute, to+" rests", func(v *serviceView) bool { return v.members[to].Role == "failed" })
		s.mu.Lock()
		s.nemesis.hosts.unfenced = false
		s.mu.Unlock()
		time.Sleep(time.Minute)
		s.orders(func(c *election.Control, e election.Order) {
			c.Switchover = &election.Switchover{Order: e, To: to, Force: true, Deadline: time.Now().Add(time.Minute)}
		})
		s.until(prompt, to+" tries again", func(v *serviceView) bool { return v.members[to].Role != "failed" })
	})
}

// Who took over could only say that the previous active was lost. It knows better, and says so once it can.
func TestTheHistorySaysWhatEndedAnActivationWithItsSession(t *testing.T) {
	ends := func(t *testing.T, want string, change func(*Plan), fault func(s *scene, name string) (end func())) {
		play(t, change, func(s *scene) {
			var token int64
			name := s.holdsOut(0)
			s.see(func(v *serviceView) { token = v.token })
			time.Sleep(s.plan.Timeout) // the breadcrumb lists all members by now
			end := fault(s, name)
			time.Sleep(5 * s.plan.Timeout)
			end()
			s.until(5*time.Minute, "the history says "+want, func(v *serviceView) bool { return v.ends[token] == want })
			time.Sleep(time.Minute)
			s.see(func(v *serviceView) {
				if v.ends[token] != want {
					t.Errorf("the history says %q", v.ends[token])
				}
			})
		})
	}
	t.Run("cut off", func(t *testing.T) {
		ends(t, "lease ending", func(*Plan) {}, func(s *scene, name string) func() {
			return s.nemesis.links.disturbLink(Fault{Kind: CutLink, Node: s.indexOf(name), Server: -1, Way: cutBoth, For: time.Minute})
		})
	})
	t.Run("failsafe with a watchdog, and ZooKeeper's return", func(t *testing.T) { // without one, it goes on
		ends(t, "session expired", func(p *Plan) { p.Failsafe, p.Agents, p.Watchdog = []bool{true}, true, watchdogAutomatic }, func(s *scene, name string) func() {
			end, _ := s.nemesis.servers.loseEnsemble(Fault{Kind: LoseEnsemble, Way: allHosts, For: time.Minute})
			return func() {
				s.see(func(v *serviceView) {
					if _, runs := v.active(); !runs && len(v.living) == 0 {
						t.Error("it did not go on by promises, so this shows nothing")
					}
				})
				end()
			}
		})
	})
}

// All nodes lose sight of the servers for so long that the session expires. Its node takes the lock again when it is back, before the other one
// does, and the program does not notice.
func TestAFailsafeProgramOutlastsItsSession(t *testing.T) {
	play(t, func(p *Plan) { p.Failsafe, p.Agents = []bool{true}, true }, func(s *scene) {
		var first lockView
		var runs int
		s.holdsOut(0)
		s.see(func(v *serviceView) { first, runs = v.lock, v.runs })
		time.Sleep(s.plan.Timeout) // the breadcrumb lists all members by now
		end, _ := s.nemesis.servers.loseEnsemble(Fault{Kind: LoseEnsemble, Way: allHosts, For: time.Minute})
		time.Sleep(5 * s.plan.Timeout)
		s.see(func(v *serviceView) {
			if v.lock.there {
				t.Error("the session has not expired, so this shows nothing")
			}
		})
		end()
		s.until(s.plan.Timeout/4, "the lock is taken again", func(v *serviceView) bool { return v.lock.there && v.lock.token == first.token })
		time.Sleep(5 * s.plan.Timeout)
		s.see(func(v *serviceView) {
			if v.runs != runs || len(v.living) == 0 || v.lock.token != first.token || v.lock.czxid <= first.czxid {
				t.Errorf("%d starts, then %d; the lock %+v, then %+v", runs, v.runs, first, v.lock)
			}
		})
	})
}

// A program that has moved itself to another cgroup is told of while it runs, not only in the log, and no longer than that.
func TestAProgramThatHasMovedItselfIsToldOf(t *testing.T) {
	play(t, func(*Plan) {}, func(s *scene) {
		var name string
		s.see(func(v *serviceView) {
			name, _ = v.active()
			for p := range v.living {
				p.nature.strays = true
			}
		})
		s.until(2*time.Minute, "it says so", func(v *serviceView) bool {
			m := v.members[name]
			return m.Role == "active" && m.Health == "ok" && strings.Contains(m.Why, "is in another cgroup, /elsewhere")
		})
		s.orders(func(c *election.Control, e election.Order) { c.Restart = &e })
		s.until(time.Minute, "another one runs, and nothing is said of it", func(v *serviceView) bool {
			at, runs := v.active()
			return runs && at == name && v.members[name].Health == "ok" && v.members[name].Why == ""
		})
	})
}

// A node does not know whether its entry in the history was written, if the answer is lost. It neither takes that entry for one of somebody
// who was lost, nor waits until the end to write another.
func TestTheHistoryHasAnActivationOnceThoughAnAnswerIsLost(t *testing.T) {
	play(t, func(*Plan) {}, func(s *scene) {
		var from string
		var previous, token int64
		from = s.holdsOut(0)
		s.see(func(v *serviceView) { previous = v.token })
		s.mu.Lock()
		s.node(from).host.powerOff()
		s.mu.Unlock()
		s.until(time.Minute, "it is started elsewhere", func(v *serviceView) bool { return v.token != previous })
		s.nemesis.servers.breakReply(Fault{Kind: BreakReply, N: 39, Server: -1}) // the next create, whose reply is lost
		time.Sleep(10 * time.Second)
		s.see(func(v *serviceView) {
			token = v.token
			if v.ends[previous] == "" {
				t.Error("the end of the previous activation is not written while this one lasts")
			}
		})
		_, stopped := s.nemesis.begin(Fault{Kind: StopSupervisor, Node: 1 - s.indexOf(from), For: time.Minute})
		if !stopped {
			t.Fatal("the supervisor does not stop")
		}
		s.until(time.Minute, "its end is written", func(v *serviceView) bool { return v.ends[token] != "" })
		s.see(func(v *serviceView) {
			if v.ends[token] != "stop asked" {
				t.Errorf("the history says %q", v.ends[token])
			}
		})
	})
}

// A supervisor that thaws proves a death that its guardians have proved long ago. The history keeps what is known of that.
func TestAFrozenSupervisorDoesNotRewriteItsEnd(t *testing.T) {
	for _, froze := range []time.Duration{5 * time.Second, 8 * time.Second, 30 * time.Second} {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, alone: %v", froze, alone), func(t *testing.T) {
				play(t, func(*Plan) {}, func(s *scene) {
					var token int64
					var died time.Time
					name := s.holdsOut(0)
					s.see(func(v *serviceView) { token = v.token })
					if alone {
						s.mu.Lock()
						s.nodes[1-s.indexOf(name)].host.powerOff()
						s.mu.Unlock()
					}
					time.Sleep(time.Second)
					if _, frozen := s.nemesis.begin(Fault{Kind: FreezeSupervisor, Node: s.indexOf(name), For: froze}); !frozen {
						t.Fatal("it does not freeze")
					}
					s.until(froze-time.Millisecond, "its program is dead", func(v *serviceView) bool { return v.token != token || len(v.living) == 0 })
					died = time.Now()
					s.until(time.Minute, "another one runs, and its end is written", func(v *serviceView) bool { return v.token != token && v.ends[token] != "" })
					time.Sleep(time.Minute)
					s.see(func(v *serviceView) {
						if late := v.endOf(token).Sub(died); late > 20*time.Millisecond || late < -20*time.Millisecond {
							t.Errorf("it ended %v after its program, in the history: %s", late, v.ends[token])
						}
						if !alone && !strings.HasPrefix(v.ends[token], string(election.SupervisorLost)) {
							t.Errorf("it is said to have ended by: %s", v.ends[token])
						}
					})
				})
			})
		}
	}
}

// endOf is when an activation ended, as the history has it.
func (v *serviceView) endOf(token int64) time.Time {
	for _, a := range v.history {
		if a.Token == token && a.End != nil {
			return *a.End
		}
	}
	return time.Time{}
}
