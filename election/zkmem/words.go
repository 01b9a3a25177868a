package zkmem

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// version is what the words say; clients that parse it expect a release of ZooKeeper.
const version = "3.8.0-understudy-zkmem, built on 2022-02-25 08:49 UTC"

var words = map[string]func(*Server, *strings.Builder){
	"ruok": func(_ *Server, b *strings.Builder) { b.WriteString("imok") },
	"isro": func(_ *Server, b *strings.Builder) { b.WriteString("rw") },
	"srvr": (*Server).wordSrvr,
	"stat": (*Server).wordStat,
	"mntr": (*Server).wordMntr,
	"cons": (*Server).wordCons,
	"conf": (*Server).wordConf,
	"wchs": (*Server).wordWchs,
}

func isWord(w string) bool { return words[w] != nil }

func (s *Server) answerWord(c *conn, word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.over {
		return
	}
	var b strings.Builder
	words[word](s, &b)
	c.sent.Add(1)
	c.out.push([]byte(b.String()))
	c.hangUp()
}

func (s *Server) traffic() (received, sent int64) {
	received, sent = s.received, s.sent
	for c := range s.open {
		received += c.received.Load()
		sent += c.sent.Load()
	}
	return received, sent
}

func (s *Server) alive() (list []*conn) {
	for c := range s.open {
		if !c.over {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *conn) int { return strings.Compare(a.addr(), b.addr()) })
	return list
}

func (s *Server) wordSrvr(b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s\n", version)
	s.summary(b)
}

func (s *Server) summary(b *strings.Builder) {
	received, sent := s.traffic()
	fmt.Fprintf(b, "Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\n", received, sent)
	fmt.Fprintf(b, "Connections: %d\nOutstanding: 0\nZxid: %#x\n", len(s.alive()), s.db.zxid)
	fmt.Fprintf(b, "Mode: standalone\nNode count: %d\n", s.nodeCount())
}

// nodeCount counts the root twice, as the real server does: it goes by two names.
func (s *Server) nodeCount() int { return len(s.db.tree.nodes) + 1 }

func (s *Server) wordStat(b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s\nClients:\n", version)
	for _, c := range s.alive() {
		fmt.Fprintf(b, " /%s[%d](queued=0,recved=%d,sent=%d)\n", c.addr(), interest(c), c.received.Load(), c.sent.Load())
	}
	b.WriteString("\n")
	s.summary(b)
}

// interest is 1 for a connection that is read from, 0 for the one that brought the four-letter word.
func interest(c *conn) int {
	if c.shaken {
		return 1
	}
	return 0
}

func (s *Server) wordCons(b *strings.Builder) {
	for _, c := range s.alive() {
		fmt.Fprintf(b, " /%s[%d](queued=0,recved=%d,sent=%d", c.addr(), interest(c), c.received.Load(), c.sent.Load())
		if c.shaken {
			fmt.Fprintf(b, ",sid=%#x,lop=%s,est=%d,to=%d,lcxid=%#x,lzxid=%#x,lresp=%d,llat=0,minlat=0,avglat=0,maxlat=0",
				uint64(c.session), c.lastOp, c.since.UnixMilli(), c.timeout.Milliseconds(), uint32(c.lastXid),
				uint64(c.lastZxid), time.Now().UnixMilli())
		}
		b.WriteString(")\n")
	}
	b.WriteString("\n")
}

func (s *Server) wordConf(b *strings.Builder) {
	port := "-1"
	for l := range s.listeners {
		if _, p, ok := strings.Cut(l.Addr().String(), ":"); ok {
			port = p[strings.LastIndexByte(p, ':')+1:]
		}
	}
	fmt.Fprintf(b, "clientPort=%s\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\n", port)
	fmt.Fprintf(b, "tickTime=%d\nmaxClientCnxns=0\n", s.cfg.TickTime.Milliseconds())
	fmt.Fprintf(b, "minSessionTimeout=%d\nmaxSessionTimeout=%d\n", s.cfg.MinTimeout.Milliseconds(), s.cfg.MaxTimeout.Milliseconds())
	b.WriteString("clientPortListenBacklog=-1\nserverId=0\n")
}

func (s *Server) wordWchs(b *strings.Builder) {
	paths, conns := map[string]struct{}{}, map[*conn]struct{}{}
	for _, set := range []watchSet{s.watches.data, s.watches.child} {
		for path, who := range set {
			paths[path] = struct{}{}
			for c := range who {
				conns[c] = struct{}{}
			}
		}
	}
	fmt.Fprintf(b, "%d connections watching %d paths\nTotal watches:%d", len(conns), len(paths), s.watchCount())
}

func (s *Server) watchCount() int { return s.watches.data.count() + s.watches.child.count() }

func (s *Server) wordMntr(b *strings.Builder) {
	received, sent := s.traffic()
	for _, line := range []struct {
		key   string
		value any
	}{
		{"version", version},
		{"server_state", "standalone"},
		{"ephemerals_count", s.db.tree.ephemeralCount()},
		{"num_alive_connections", len(s.alive())},
		{"avg_latency", "0.0"},
		{"outstanding_requests", 0},
		{"znode_count", s.nodeCount()},
		{"global_sessions", len(s.db.sessions.byID)},
		{"packets_sent", sent},
		{"packets_received", received},
		{"watch_count", s.watchCount()},
		{"min_latency", 0},
		{"max_latency", 0},
		{"approximate_data_size", s.db.tree.dataSize()},
		{"local_sessions", 0},
		{"uptime", time.Since(s.since).Milliseconds()},
	} {
		fmt.Fprintf(b, "zk_%s\t%v\n", line.key, line.value)
	}
}
