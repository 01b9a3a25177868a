package control

import "testing"

func TestSilenceIsThreeLeasesByTheNewestHeartbeat(t *testing.T) {
	node := func(name string, session, at int64) NodeStatus {
		return NodeStatus{Node: name, Beat: Heartbeat{Session: session, At: at, LeaseMs: 1000}}
	}
	b := node("b", 2, 10_000)
	for name, c := range map[string]struct {
		nodes []NodeStatus
		gone  bool
	}{
		"it sends heartbeats": {[]NodeStatus{node("a", 1, 7000), b}, false},
		"it sends none":       {[]NodeStatus{node("a", 1, 6999), b}, true},
		"nobody does":         {[]NodeStatus{node("a", 1, 6999)}, false},
		"a restored znode":    {[]NodeStatus{node("a", 0, 6999), b}, false},
		"no lease is known":   {[]NodeStatus{{Node: "a", Beat: Heartbeat{Session: 1}}, {Node: "b", Beat: Heartbeat{2, 10_000, 0}}}, false},
	} {
		if got := silent(c.nodes, 0); got != c.gone {
			t.Errorf("%s: %v", name, got)
		}
	}
}
