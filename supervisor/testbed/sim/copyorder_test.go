package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"understudy/election"
)

// Followers are restarted and cloned as operators order it, while primaries fail: nothing that was acknowledged is lost, no two copies are
// primaries, and each order is answered.
func TestOrdersForFollowersLoseNothing(t *testing.T) {
	done := map[string]int{}
	for seed := range uint64(12) {
		play(t, func(p *Plan) { p.Replicated, p.Seed, p.Nodes, p.Hosts, p.Priority = true, 1, 3, 3, []int{0, 0, 0} }, func(s *scene) {
			r := rand.New(rand.NewPCG(seed, 0))
			runs := func(v *serviceView) bool { _, runs := v.active(); return runs }
			for round := range 8 {
				s.until(10*time.Minute, "a primary runs", runs)
				time.Sleep(time.Duration(r.IntN(30)) * time.Second)
				s.until(10*time.Minute, "a primary runs still", runs)
				primary := ""
				s.see(func(v *serviceView) { primary, _ = v.active() })
				do := []string{"restart", "reload", "reclone"}[r.IntN(3)]
				of := fmt.Sprint("n", 1+r.IntN(3))
				id := ""
				s.orders(func(c *election.Control, e election.Order) {
					e.Node, id = of, e.ID
					c.Copy = &election.CopyOrder{Order: e, Do: do, Deadline: time.Now().Add(time.Minute)}
				})
				if time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond); r.IntN(2) == 0 {
					s.mu.Lock()
					for _, p := range inOrder(s.check.services["s1"].living) {
						if p.main && p.tree.node == primary {
							p.kill()
						}
					}
					s.mu.Unlock()
				}
				s.until(10*time.Minute, fmt.Sprintf("seed %d, round %d: %s of %s beside the primary %s is answered", seed, round, do, of, primary),
					func(v *serviceView) bool {
						o := v.orders.Copy
						if o != nil && o.ID == id && o.Failed != "" {
							do = "failed"
						}
						return do == "failed" || o == nil || o.ID != id
					})
				done[do]++
			}
		})
	}
	for _, outcome := range []string{"restart", "reload", "reclone", "failed"} {
		if done[outcome] == 0 {
			t.Errorf("no %s among %v", outcome, done)
		}
	}
}
