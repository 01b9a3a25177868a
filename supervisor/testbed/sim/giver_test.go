package sim

import (
	"testing"
	"time"

	"understudy/election"
)

// A switchover that names no node moves a primary whose followers have all its data, also where its node is the first by name.
func TestASwitchoverOfAReplicatedServiceMovesItToAnotherNode(t *testing.T) {
	for _, from := range []string{"n1", "n2"} {
		t.Run(from, func(t *testing.T) {
			play(t, func(p *Plan) { p.Replicated = true }, func(s *scene) {
				to := map[string]string{"n1": "n2", "n2": "n1"}[from]
				order := func(from, to string) {
					s.orders(func(c *election.Control, e election.Order) {
						c.Switchover = &election.Switchover{Order: e, From: from, To: to, Deadline: time.Now().Add(time.Minute)}
					})
				}
				runsAt := func(node string) func(v *serviceView) bool {
					return func(v *serviceView) bool { at, runs := v.active(); return at == node && runs }
				}
				now := ""
				s.see(func(v *serviceView) { now, _ = v.active() })
				if now != from {
					order(now, from)
				}
				s.until(time.Minute, from+" is the primary", runsAt(from))
				time.Sleep(time.Minute)
				order(from, "")
				s.until(time.Minute, "it has moved", runsAt(to))
			})
		})
	}
}
