package sim

import (
	"testing"
	"time"

	"understudy/election"
)

// P1: where all data is lost, a node waits for the longest lease that it has seen, whatever it did when it saw it.
func TestAWaitAfterALossOfDataIsAsLongAsAnyLease(t *testing.T) {
	const inRace, inQueue, paused, begins = "in a race", "in a queue", "paused", "a supervisor that begins after the loss"
	for _, doing := range []string{inRace, inQueue, paused, begins} {
		t.Run(doing, func(t *testing.T) {
			play(t, func(p *Plan) {
				if doing != inRace {
					p.Order = election.Queue
				}
				p.Priority, p.Failback, p.Timeout, p.Tick = []int{1, 0}, true, 20*time.Second, 200*time.Millisecond
				p.Unequal = &unequal{Timeouts: []time.Duration{20 * time.Second, 4 * time.Second}, Graces: make([]time.Duration, 2), Stops: make([]bool, 2)}
			}, func(s *scene) {
				n2 := s.nodes[1]
				restart := func(forgets bool) {
					s.mu.Lock()
					defer s.mu.Unlock()
					n2.crash(true)
					if forgets {
						clear(n2.host.known)
					}
					n2.down = time.Time{}
					s.after(time.Second, n2.start)
				}
				s.until(time.Minute, "n1 is active", func(v *serviceView) bool { at, runs := v.active(); return at == "n1" && runs })
				if doing == paused {
					s.orders(func(c *election.Control, _ election.Order) { c.Paused = true })
				}
				restart(true)
				s.until(time.Minute, "n2 begins", func(v *serviceView) bool { return v.members["n2"].Role == "" })
				s.until(time.Minute, "n2 is there again", func(v *serviceView) bool { return v.members["n2"].Role != "" })
				time.Sleep(5 * time.Second)
				s.mu.Lock()
				s.nemesis.links.cutFor(Fault{Kind: CutLink, Node: 0, Server: -1, Way: cutBoth, For: 30 * time.Second})
				s.mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				s.nemesis.servers.wipe()
				if doing == begins {
					restart(false)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}
