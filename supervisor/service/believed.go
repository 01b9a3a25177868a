package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy/election"
	"understudy/supervisor/printable"
)

// Any client that may write in ZooKeeper can write a report. Its address decides by whose data this node's copy may be replaced, so the
// config wins: once it gives the address of any other node's copy, no other address counts, and no other node.

const doubtEvery = time.Minute

// believed leaves out the reports that this node's config contradicts, and says why.
func believed(seen election.CopiesSeen, me string, others map[string]string) election.CopiesSeen {
	all := seen.Copies
	seen.Copies, seen.Doubts = nil, maps.Clone(seen.Doubts)
	doubt := func(node, format string, args ...any) {
		if seen.Doubts == nil {
			seen.Doubts = map[string]string{}
		}
		seen.Doubts[node] = fmt.Sprintf(format, args...)
	}
	for _, one := range all {
		given, listed := others[one.Node]
		switch {
		case one.Node == me:
		case one.Address == "":
			doubt(one.Node, "it reports no address")
			continue
		case len(others) == 0:
		case !listed:
			doubt(one.Node, "this config gives the addresses of other nodes' copies, and none for %s", one.Node)
			continue
		case !strings.EqualFold(given, one.Address):
			doubt(one.Node, "it reports the address %q, and this config gives %q", one.Address, given)
			continue
		default:
			one.Address = given
			one.Host, _ = printable.SplitPort(given)
		}
		seen.Copies = append(seen.Copies, one)
	}
	return seen
}

// tellDoubts logs which reports are not believed, now and then.
func (c *copyHere) tellDoubts(doubts map[string]string) {
	for _, node := range slices.Sorted(maps.Keys(doubts)) {
		c.doubts.Say(fmt.Sprintf("%.80s", node), "why", doubts[node])
	}
}
