package sim

import (
	"testing"
	"time"
)

// P5: a supervisor that cannot kill its child says so in the breadcrumb before anybody else may accept a delay as proof: also when it
// had no ZooKeeper for a while, and when somebody deletes its lock.
func TestWhatCannotBeKilledIsToldBeforeAnybodyStartsBesideIt(t *testing.T) {
	for name, byHand := range map[string]bool{"cut off for a while": false, "its lock deleted by hand": true} {
		t.Run(name, func(t *testing.T) {
			play(t, func(*Plan) {}, func(s *scene) {
				var node string
				s.see(func(v *serviceView) { node, _ = v.active() })
				s.mu.Lock()
				n := s.nodes[s.indexOf(node)]
				n.host.stuck, n.host.holds = time.Now().Add(time.Minute), "s1"
				for p := range s.check.services["s1"].living {
					p.nature.ignoresTERM = true
				}
				if !byHand {
					s.nemesis.links.cutFor(Fault{Kind: CutLink, Node: n.index, Server: -1, Way: cutBoth, For: 4500 * time.Millisecond})
				}
				s.mu.Unlock()
				if byHand {
					if !s.operator.deleteLock("s1") {
						t.Fatal("its lock is not deleted")
					}
				}
				told, beside := false, false
				for range 1500 {
					time.Sleep(20 * time.Millisecond)
					s.see(func(v *serviceView) { told, beside = told || v.crumb.leftover, beside || s.check.tally.doomed > 0 })
				}
				if !told || beside {
					t.Errorf("told %v, started beside it %v", told, beside)
				}
			})
		})
	}
}
