package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// alike is how long the servers are given to show the same, once all of them serve and nothing is wrong any more.
const alike = 3 * time.Second

// sew finds servers that disagree about which ephemerals there are, and has the followers take all their data from the leader,
// as an operator would. That is ZooKeeper's own fault: a follower of 3.8 that loses its leader may write transactions twice to its
// log, and come to other data from it than the rest (ZOOKEEPER-4712).
func (en *ensemble) sew() (sewn bool, err error) {
	torn := ""
	if kit.Reached(alike, func() bool { torn = en.torn(); return torn == "" }) {
		return false, nil
	}
	en.say("%s    ZooKeeper's servers disagree: %s", en.record.clock(tick.Now()), torn)
	en.record.count(func(c *history.Counts) { c.Torn = append(c.Torn, torn) })
	for i := range en.servers {
		if i == en.stage.ZK.Leader() {
			continue
		}
		for _, do := range []func(int) error{en.stage.ZK.Kill, en.stage.ZK.Wipe, en.stage.ZK.StartServer} {
			if err := do(i); err != nil {
				return true, err
			}
		}
		if err := en.serve(); err != nil {
			return true, err
		}
	}
	return true, nil
}

// torn tells what some servers have and others have not. Of one that does not answer nothing is known.
func (en *ensemble) torn() string {
	var all []map[string]bool
	for i := range en.servers {
		text, err := en.stage.ZK.FourLetter(i, "dump")
		if err != nil {
			return ""
		}
		all = append(all, ephemerals(text))
	}
	for i, has := range all {
		for _, path := range slices.Sorted(maps.Keys(has)) {
			for j, other := range all {
				if !other[path] {
					return fmt.Sprintf("%s has %s, %s has not", en.servers[i].host.Name, path, en.servers[j].host.Name)
				}
			}
		}
	}
	return ""
}

// ephemerals takes session and path of each out of what a server dumps.
func ephemerals(dump string) map[string]bool {
	all, session := map[string]bool{}, ""
	for line := range strings.Lines(dump) {
		word := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(word, "0x") && strings.HasSuffix(word, ":"):
			session = word
		case strings.HasPrefix(line, "\t/"):
			all[session+word] = true
		}
	}
	return all
}
