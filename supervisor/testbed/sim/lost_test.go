package sim

import (
	"testing"
	"time"
)

// A service leaves a node whose device is away for one that has its own, though nothing of it has failed. Where none has one, it stays.
func TestAServiceLeavesANodeWithoutItsDevice(t *testing.T) {
	play(t, func(p *Plan) { p.Undo, p.Devices = time.Second, true }, func(s *scene) {
		loses := func(node string) (back func()) {
			s.mu.Lock()
			defer s.mu.Unlock()
			end, _ := s.nemesis.hosts.loseDevice(Fault{Kind: LoseDevice, N: 3}, s.node(node)) // nothing is undone, nothing ends
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				end()
			}
		}
		runsAt := func(node string) func(v *serviceView) bool {
			return func(v *serviceView) bool {
				at, runs := v.active()
				return runs && at == node
			}
		}
		from := s.holdsOut(0)
		to := s.nodes[1-s.indexOf(from)].name
		back := loses(from)
		s.until(10*time.Second, "it leaves", runsAt(to))
		loses(to)
		s.until(10*time.Second, "it is told that nothing else can take it", func(v *serviceView) bool { return v.members[to].Why == errNoDevice.Error() })
		time.Sleep(time.Minute)
		s.until(0, "it stays", runsAt(to))
		back()
		s.until(time.Minute, "it leaves again", runsAt(from))
	})
}
