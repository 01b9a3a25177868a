package zkmem

import (
	"fmt"
	"net"
	"strings"
	"time"

	"understudy/election/jute"
)

// latest is what the word cons tells of a connection.
type latest struct {
	since time.Time // when it was opened
	op    string
	xid   int32
	zxid  int64
}

// lastOps are the names that the word cons has for what a connection did last.
var lastOps = map[jute.Op]string{
	jute.OpCreate: "CREA", jute.OpCreate2: "CREA", jute.OpCreateContainer: "CREA", jute.OpCreateTTL: "CREA",
	jute.OpDelete: "DELE", jute.OpExists: "EXIS", jute.OpGetData: "GETD", jute.OpSetData: "SETD", jute.OpGetACL: "GETA",
	jute.OpSetACL: "SETA", jute.OpGetChildren: "GETC", jute.OpGetChildren2: "GETC", jute.OpSync: "SYNC",
	jute.OpPing: "PING", jute.OpCheck: "CHEC", jute.OpMulti: "MULT", jute.OpSetWatches: "SETW",
	jute.OpSetWatches2: "STW2", jute.OpAddWatch: "ADDW", jute.OpCheckWatches: "CHKW", jute.OpRemoveWatches: "REMW",
	jute.OpGetEphemerals: "GETE", jute.OpGetAllChildrenNumber: "GETACN",
}

func (cs *clients) details() string {
	var b strings.Builder
	for _, c := range cs.alive() {
		fmt.Fprintf(&b, " /%s[%d](queued=0,recved=%d,sent=%d", c.addr(), interest(c), c.received.Load(), c.sent.Load())
		if c.shaken {
			fmt.Fprintf(&b, ",sid=%#x,lop=%s,est=%d,to=%d,lcxid=%#x,lzxid=%#x,lresp=%d,llat=0,minlat=0,avglat=0,maxlat=0",
				uint64(c.session), c.last.op, c.last.since.UnixMilli(), c.timeout.Milliseconds(), uint32(c.last.xid),
				uint64(c.last.zxid), time.Now().UnixMilli())
		}
		b.WriteString(")\n")
	}
	return b.String() + "\n"
}

// settings is what the server was made with.
func (t *teller) settings() string {
	port := "-1"
	for l := range t.s.clients.listeners {
		if _, p, err := net.SplitHostPort(l.Addr().String()); err == nil {
			port = p
		}
	}
	return fmt.Sprintf("clientPort=%s\nsecureClientPort=-1\ndataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\ntickTime=%d\n"+
		"maxClientCnxns=0\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nclientPortListenBacklog=-1\nserverId=0\n", port,
		t.s.cfg.TickTime.Milliseconds(), t.s.cfg.MinTimeout.Milliseconds(), t.s.cfg.MaxTimeout.Milliseconds())
}
