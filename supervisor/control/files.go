package control

import (
	"cmp"
	"maps"
	"slices"
)

// filesOf groups the nodes that run a service by the config files that they have; nil: all have the same, as far as they say.
func filesOf(v ServiceStatus, nodes []NodeStatus) [][]string {
	bySum := map[string][]string{}
	for _, n := range nodes {
		if n.Sum != "" && v.Involves(n.Node) {
			bySum[n.Sum] = append(bySum[n.Sum], n.Node)
		}
	}
	if len(bySum) < 2 {
		return nil
	}
	for _, names := range bySum {
		slices.Sort(names)
	}
	return slices.SortedFunc(maps.Values(bySum), func(a, b []string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a[0], b[0]))
	})
}
