package zkmem

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// version is what the words say; clients that parse it expect a release of ZooKeeper.
const version = "3.8.0-understudy-zkmem, built on 2022-02-25 08:49 UTC"

// words are the four-letter words that are answered.
var words = map[string]func(*teller) string{
	"ruok": func(*teller) string { return "imok" },
	"isro": func(*teller) string { return "rw" },
	"srvr": func(t *teller) string { return "Zookeeper version: " + version + "\n" + t.summary() },
	"stat": func(t *teller) string {
		return "Zookeeper version: " + version + "\nClients:\n" + t.s.clients.list() + "\n" + t.summary()
	},
	"mntr": (*teller).figures,
	"cons": func(t *teller) string { return t.s.clients.details() },
	"conf": (*teller).settings,
	"wchs": func(t *teller) string { return t.s.watches.data.summary() },
	"wchc": func(t *teller) string { return t.s.watches.data.byClient() },
	"wchp": func(t *teller) string { return t.s.watches.data.byPath() },
	"dirs": func(*teller) string { return "datadir_size: 0\nlogdir_size: 0\n" },
	"envi": func(*teller) string { return environment() },
	"dump": (*teller).dump,
}

// teller answers the four-letter words, from what the server has. The server's lock guards it.
type teller struct {
	s     *Server
	since time.Time
}

func isWord(w string) bool { return words[w] != nil }

func (x exchange) answerWord(word string) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if x.c.over {
		return
	}
	x.c.sent.Add(1)
	x.c.out.push([]byte(words[word](&x.s.teller)))
	x.c.hangUp()
}

func (cs *clients) alive() (list []*conn) {
	for c := range cs.open {
		if !c.over {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *conn) int { return strings.Compare(a.addr(), b.addr()) })
	return list
}

func (cs *clients) list() string {
	var b strings.Builder
	for _, c := range cs.alive() {
		fmt.Fprintf(&b, " /%s[%d](queued=0,recved=%d,sent=%d)\n", c.addr(), interest(c), c.received.Load(), c.sent.Load())
	}
	return b.String()
}

// interest is 1 for a connection that is read from, 0 for the one that brought the four-letter word.
func interest(c *conn) int {
	if c.shaken {
		return 1
	}
	return 0
}

func (t *teller) summary() string {
	received, sent := t.s.clients.traffic()
	return fmt.Sprintf("Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: 0\nZxid: %#x\n"+
		"Mode: standalone\nNode count: %d\n", received, sent, len(t.s.clients.alive()), t.s.db.zxid, t.s.db.tree.count())
}

func (t *teller) figures() string {
	var b strings.Builder
	received, sent := t.s.clients.traffic()
	for _, line := range []struct {
		key   string
		value any
	}{
		{"version", version},
		{"server_state", "standalone"},
		{"ephemerals_count", t.s.db.tree.ephemeralCount()},
		{"num_alive_connections", len(t.s.clients.alive())},
		{"avg_latency", "0.0"},
		{"outstanding_requests", 0},
		{"znode_count", t.s.db.tree.count()},
		{"global_sessions", len(t.s.db.sessions.byID)},
		{"packets_sent", sent},
		{"packets_received", received},
		{"watch_count", t.s.watches.data.count() + t.s.watches.child.count()},
		{"min_latency", 0},
		{"max_latency", 0},
		{"approximate_data_size", t.s.db.tree.dataSize()},
		{"local_sessions", 0},
		{"uptime", time.Since(t.since).Milliseconds()},
	} {
		fmt.Fprintf(&b, "zk_%s\t%v\n", line.key, line.value)
	}
	return b.String()
}
