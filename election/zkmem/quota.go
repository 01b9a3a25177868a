package zkmem

import (
	"fmt"
	"strings"
)

// A node has a quota while its namesake below quotas has a child limits; stats beside it tells how many nodes and bytes of data there
// are, itself included. As in a real server that enforces nothing, which is the default, only the counting is done, and nobody is told of it.
const (
	quotas = "/zookeeper/quota"
	limits = "/zookeeper_limits"
	stats  = "/zookeeper_stats"
)

// counted adds to the stats of the nearest node with a quota, from path upwards.
func (t *tree) counted(path string, nodes, bytes int) {
	if root := t.nodes[quotas]; root == nil || len(root.children) == 0 {
		return
	}
	for at := path; at != ""; at, _, _ = parentOf(at) {
		if t.nodes[quotas+at+limits] == nil {
			continue
		}
		n := t.nodes[quotas+at+stats]
		var hasNodes, hasBytes int
		if n == nil {
			return
		}
		if _, err := fmt.Sscanf(string(n.data), "count=%d,bytes=%d", &hasNodes, &hasBytes); err == nil {
			n.data = quotaStats(hasNodes+nodes, hasBytes+bytes)
		}
		return
	}
}

// recount fills stats that begin to be there.
func (t *tree) recount(path string, n *node) {
	whose, ok := strings.CutSuffix(strings.TrimPrefix(path, quotas), stats)
	if !ok || !strings.HasPrefix(path, quotas+"/") {
		return
	}
	nodes, bytes := 0, 0
	for path, n := range t.nodes {
		if path == whose || strings.HasPrefix(path, whose+"/") {
			nodes, bytes = nodes+1, bytes+len(n.data)
		}
	}
	n.data = quotaStats(nodes, bytes)
}

func quotaStats(nodes, bytes int) []byte { return fmt.Appendf(nil, "count=%d,bytes=%d", nodes, bytes) }
