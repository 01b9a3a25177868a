package sim

import (
	"strings"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/zkfaults"
)

// What the servers refuse, and the client library has no name for, is in the status of the node that cannot take the service.
func TestWhatTheServersRefuseIsInTheStatus(t *testing.T) {
	for path, code := range map[string]jute.Code{"/ActiveStandbyElectorLock": jute.QuotaExceeded, "/ActiveBreadCrumb": -999} {
		t.Run(path, func(t *testing.T) {
			play(t, func(*Plan) {}, func(s *scene) {
				var from string
				s.see(func(v *serviceView) { from, _ = v.active() })
				to := map[string]string{"n1": "n2", "n2": "n1"}[from]
				s.mu.Lock()
				s.nodes[s.indexOf(from)].host.powerOff()
				s.mu.Unlock()
				s.zk.servers[0].Refuse(zkfaults.Match{Op: jute.OpMulti, Path: path, Count: zkfaults.Always}, code)
				took := s.until(time.Minute, "it says why", func(v *serviceView) bool {
					m := v.members[to]
					return m.Health != "ok" && strings.Contains(m.Why, strings.TrimPrefix(code.Error(), "zookeeper: "))
				})
				t.Log(took)
				s.zk.servers[0].Forget()
				s.until(time.Minute, "it runs", func(v *serviceView) bool { at, runs := v.active(); return at == to && runs })
			})
		})
	}
}
