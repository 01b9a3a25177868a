package sim

import (
	"slices"
	"testing"
	"time"
)

// P1: all data is lost while the active node is cut off, so its lease lasts. A standby that is restarted just then, with another list of servers,
// remembers that there was an active node.
func TestARestartedStandbyRemembersWhatIsLost(t *testing.T) {
	play(t, func(p *Plan) {}, func(s *scene) {
		active := ""
		s.until(time.Minute, "it runs", func(v *serviceView) (runs bool) { active, runs = v.active(); return runs })
		time.Sleep(time.Minute)
		s.mu.Lock()
		i := slices.IndexFunc(s.nodes, func(n *node) bool { return n.name == active })
		standby := s.nodes[1-i]
		s.net.change(s.nodes[i].host.index, 0, func(l *link) { l.up.cut++; l.down.cut++ })
		s.mu.Unlock()
		s.nemesis.servers.wipe()
		s.mu.Lock()
		for before := standby.inc.servers; slices.Equal(standby.inc.servers, before); {
			standby.crash(true)
			standby.down = time.Time{}
			standby.start()
		}
		s.mu.Unlock()
		s.until(time.Minute, "the other node takes over", func(v *serviceView) bool { node, runs := v.active(); return runs && node == standby.name })
	})
}
