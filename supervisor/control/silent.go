package control

// Heartbeat is what the znode of a supervisor shows of its session. Times are ZooKeeper's, in ms.
type Heartbeat struct{ Session, At, LeaseMs int64 }

// silent reports whether a node's newest heartbeat was three leases before the newest one of all nodes: ZooKeeper ends the session of a
// lost host after two, and a tick. It blocks nobody: whatever its session has, other nodes take.
func silent(nodes []NodeStatus, of int) bool {
	newest, lease := int64(0), int64(0)
	for _, n := range nodes {
		newest, lease = max(newest, n.Beat.At), max(lease, n.Beat.LeaseMs)
	}
	return lease > 0 && nodes[of].Beat.Session != 0 && newest-nodes[of].Beat.At > 3*lease
}
