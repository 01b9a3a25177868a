package kit

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
)

func TestProxyTellsOfEachRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, _ = io.Copy(conn, conn)
			conn.Close()
		}
	}()
	p := newProxy(t, "127.0.0.1:0", l.Addr().String())
	conn, err := net.Dial("tcp", p.Addr())
	must.OK(t, err)
	defer conn.Close()
	must.OK(t, conn.SetDeadline(time.Now().Add(Soon)))
	request := func(op jute.Op, body ...jute.Record) []jute.Record {
		return append([]jute.Record{jute.RequestHeader{Xid: 1, Op: op}}, body...)
	}
	all := [][]jute.Record{
		{jute.ConnectRequest{Timeout: 4000}},
		request(jute.OpDelete, jute.PathVersion{Path: "/a/b", Version: -1}),
		request(jute.OpPing),
		request(jute.OpMulti, jute.Multi{jute.CreateOp(jute.Create{Path: "/s/lock"}), jute.DeleteOp("/s/crumb", -1)}),
	}
	for _, records := range all {
		if _, err := conn.Write(jute.Frame(records...)); err != nil {
			t.Fatal(err)
		}
	}
	for range all { // the server has it as it was sent
		if _, err := jute.ReadFrame(conn, 0); err != nil {
			t.Error(err)
		}
	}
	if seen := fmt.Sprint(p.Seen()); seen != "[delete b ping . multi[create delete] lock]" {
		t.Errorf("seen: %s", seen)
	}
}
