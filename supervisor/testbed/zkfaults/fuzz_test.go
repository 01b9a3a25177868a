package zkfaults_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/election/zkmem"
	"understudy/supervisor/testbed/zkfaults"
	"understudy/supervisor/testbed/zktest"
	"understudy/supervisor/wait"
)

// FuzzRequests lets one client send anything after its handshake, and wants another one not to notice.
func FuzzRequests(f *testing.F) {
	add := func(op jute.Op, body ...jute.Record) {
		f.Add(jute.Frame(append([]jute.Record{jute.RequestHeader{Xid: 1, Op: op}}, body...)...))
	}
	add(jute.OpCreate, jute.Create{Path: "/x", ACL: open})
	add(jute.OpCreate, jute.Create{Path: "/safe/x", ACL: acl(31, "digest", "1:2"), Flags: 3})
	add(jute.OpCreate2, jute.Create{Path: "/c", ACL: acl(31, "auth", ""), Flags: 4})
	add(jute.OpMulti, jute.Multi{jute.CreateOp(jute.Create{Path: "/a", ACL: open}), jute.CheckOp("/", -1), jute.DeleteOp("/a", 0)})
	add(jute.OpSetWatches, jute.SetWatches{Data: []string{"/", "x", ""}, Exist: []string{"/safe"}, Child: []string{"//"}})
	add(jute.OpAuth, jute.AuthPacket{Scheme: "digest", Auth: nil})
	add(jute.OpCloseSession)
	f.Add([]byte("ruok"))
	f.Add([]byte{0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 14})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})

	f.Fuzz(func(t *testing.T, sent []byte) {
		both(func(dial func() net.Conn) { besides(t, dial, sent) })
	})
}

func besides(t *testing.T, dial func() net.Conn, sent []byte) {
	t.Helper()
	safe := greet(t, dial(), jute.ConnectRequest{Timeout: 40000})
	safe.want(createAs("/safe", "kept", acl(31, "digest", "a:b"), 0), "ok /safe")
	safe.want(createAs("/eph", "", acl(1, "world", "anyone"), 1), "ok /eph")

	nc := dial()
	if _, err := zktest.NewRaw(nc, jute.ConnectRequest{Timeout: 40000}); err != nil {
		t.Fatal(err)
	}
	flood(nc, sent)

	var data jute.DataStat
	safe.want(ping, "ok")
	if _, err := safe.Call(jute.OpGetData, jute.PathWatch{Path: "/eph"}, &data); err == nil && data.Stat.EphemeralOwner != safe.Session.SessionID {
		t.Errorf("/eph belongs to %#x", data.Stat.EphemeralOwner)
	}
	safe.want(get("/safe", false), "no auth")
}

// flood sends bytes and, so that the far side gets to the end of them, one more ping, and reads what comes back.
func flood(nc net.Conn, sent []byte) {
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(time.Second))
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			frame, err := jute.ReadFrame(nc, 16<<20)
			if err != nil || len(frame) >= 4 && int32(binary.BigEndian.Uint32(frame)) == jute.XidPing {
				break
			}
		}
		_, _ = io.Copy(io.Discard, nc)
	}()
	_, _ = nc.Write(sent)
	if complete(sent) {
		_, _ = nc.Write(jute.Frame(jute.RequestHeader{Xid: jute.XidPing, Op: jute.OpPing}))
	}
	_ = nc.SetDeadline(time.Now().Add(2 * time.Millisecond))
	<-read
}

func complete(sent []byte) bool {
	in := bytes.NewReader(sent)
	for in.Len() > 0 {
		if _, err := jute.ReadFrame(in, 0); err != nil {
			return false
		}
	}
	return true
}

// both runs f beside zkmem's server, and beside one that tests disturb.
func both(f func(dial func() net.Conn)) {
	for _, s := range []server{zkmem.New(2 * time.Second), zkfaults.New(zkfaults.Config{})} {
		l := &pipes{dialled: make(chan net.Conn), closed: make(chan struct{})}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = s.Serve(l)
		}()
		f(l.dial)
		_ = s.Close()
		<-ended
	}
}

// pipes is a listener in memory.
type pipes struct {
	net.Listener
	dialled chan net.Conn
	closed  chan struct{}
}

func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.dialled <- far
	return near
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialled:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) Close() error {
	if !wait.Closed(p.closed) {
		close(p.closed)
	}
	return nil
}

// FuzzHandshake lets a client begin with anything.
func FuzzHandshake(f *testing.F) {
	f.Add(jute.Frame(jute.ConnectRequest{Timeout: 1, Password: make([]byte, 16)}))
	f.Add(jute.Frame(jute.ConnectRequest{SessionID: 5, NoReadOnly: true}))
	f.Add([]byte("mntrsrvr"))
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, sent []byte) {
		both(func(dial func() net.Conn) { flood(dial(), sent) })
	})
}
