package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy/election"
)

// Unlike says that the leases of the nodes differ; "": they do not.
func (c *Cluster) Unlike(ctx context.Context) (string, error) {
	nodes, err := list(ctx, c.znodes, election.NodesDir(c.root), parseNode)
	return unlike(nodes), err
}

func unlike(nodes []NodeStatus) string {
	of := map[int64][]string{}
	for _, n := range nodes {
		if n.LeaseMs > 0 {
			of[n.LeaseMs] = append(of[n.LeaseMs], n.Node)
		}
	}
	if len(of) < 2 {
		return ""
	}
	var parts []string
	for _, ms := range slices.Backward(slices.Sorted(maps.Keys(of))) {
		parts = append(parts, fmt.Sprintf("%v on %s", time.Duration(ms)*time.Millisecond, strings.Join(of[ms], ", ")))
	}
	return "the leases of the nodes differ: " + strings.Join(parts, "; ") +
		". After a loss of ZooKeeper's data a node waits for the longest one that it has seen. Give all nodes the same zookeeper.lease"
}
