package zkmem

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The words about watches tell of those for data alone, as the real server's do.

func (w watchSet) summary() string {
	conns := map[*conn]struct{}{}
	for _, who := range w {
		for c := range who {
			conns[c] = struct{}{}
		}
	}
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d", len(conns), len(w), w.count())
}

func (w watchSet) byClient() string {
	paths := map[int64][]string{}
	for path, who := range w {
		for c := range who {
			paths[c.session] = append(paths[c.session], path)
		}
	}
	var b strings.Builder
	for _, session := range slices.Sorted(maps.Keys(paths)) {
		slices.Sort(paths[session])
		fmt.Fprintf(&b, "%#x\n\t%s\n", uint64(session), strings.Join(paths[session], "\n\t"))
	}
	return b.String() + "\n"
}

func (w watchSet) byPath() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(w)) {
		b.WriteString(path + "\n")
		for _, session := range slices.Sorted(sessionsOf(w[path])) {
			fmt.Fprintf(&b, "\t%#x\n", uint64(session))
		}
	}
	return b.String() + "\n"
}

func sessionsOf(who map[*conn]watchMode) func(func(int64) bool) {
	return func(yield func(int64) bool) {
		for c := range who {
			if !yield(c.session) {
				return
			}
		}
	}
}

func environment() string {
	host, _ := os.Hostname() // a host without a name has none to tell
	return fmt.Sprintf("Environment:\nzookeeper.version=%s\nhost.name=%s\nos.name=Linux\nos.arch=%s\nuser.name=%s\n", version, host, runtime.GOARCH, os.Getenv("USER"))
}

// dump lists sessions, their ephemerals and their connections.
func (t *teller) dump() string {
	var b strings.Builder
	expiring := map[time.Duration][]int64{}
	for id, s := range t.s.db.sessions.byID {
		expiring[s.expires] = append(expiring[s.expires], id)
	}
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(expiring), len(t.s.db.sessions.byID))
	for _, end := range slices.Sorted(maps.Keys(expiring)) {
		ids := expiring[end]
		slices.Sort(ids)
		fmt.Fprintf(&b, "%d expire at %s:\n", len(ids), t.s.db.sessions.start.Add(end).Format(time.UnixDate))
		for _, id := range ids {
			fmt.Fprintf(&b, "\t%#x\n", uint64(id))
		}
	}
	owners := t.s.db.tree.ephemerals
	fmt.Fprintf(&b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(owners))
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		fmt.Fprintf(&b, "%#x:\n", uint64(id))
		for _, path := range t.s.db.tree.owned(id) {
			b.WriteString("\t" + path + "\n")
		}
	}
	alive := t.s.clients.alive()
	fmt.Fprintf(&b, "Connections dump:\nConnections Sets (1)/(%d):\n", len(alive))
	for _, c := range alive {
		fmt.Fprintf(&b, "\tip: /%s sessionId: %#x\n", c.addr(), uint64(c.session))
	}
	return b.String()
}
