package copies

import (
	"fmt"
	"slices"
	"strings"
)

// Quorum is how many of the nodes that can tell have to find the primary unreachable.
type Quorum string

// The quorums.
const (
	Majority Quorum = "majority"
	All      Quorum = "all"
	Any      Quorum = "any"
)

// Vote is what one node, whose copy follows, sees of the primary from outside.
type Vote struct {
	Node string
	Well bool
	Why  string // it is not
}

// Unreachable says for whom the primary is not reachable, and the first reason, if they are enough; "": they are not.
func (q Quorum) Unreachable(all []Vote) (who, why string) {
	var ill []string
	for _, s := range slices.SortedFunc(slices.Values(all), func(a, b Vote) int { return strings.Compare(a.Node, b.Node) }) {
		if s.Well {
			continue
		}
		ill = append(ill, s.Node)
		if why == "" {
			why = s.Why
		}
	}
	enough := 2*len(ill) > len(all)
	switch q {
	case All:
		enough = len(ill) == len(all)
	case Any:
		enough = true
	}
	if !enough || len(ill) == 0 {
		return "", ""
	}
	return fmt.Sprintf("for %d of %d: %s", len(ill), len(all), strings.Join(ill, ", ")), why
}
