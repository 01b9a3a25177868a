package zkfaults_test

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
)

func TestContractRequestsUpToOneMegabyteAreTaken(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		p := s.root + "/big"
		overhead := len(jute.Frame(jute.RequestHeader{}, jute.Create{Path: p, Data: []byte{}, ACL: open})) - 4
		fits := strings.Repeat("x", jute.MaxFrame-overhead)
		c.want(create(p, fits), "ok "+p)
		c.want(remove(p, -1), "ok")
		if got := c.do(create(p, fits+"x")); got != "broken connection" {
			t.Errorf("one byte more: %.100s", got)
		}
		s.client(t).want(exists(p, false), "no node")
	})
}

func TestContractUnknownRequestsAreAnsweredAndHungUpOn(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		for _, op := range []jute.Op{0, 10, 99, 200, -5, jute.OpError} {
			c := s.client(t)
			c.want(request{op: op, body: jute.Path("/")}, "unimplemented")
			if got := c.dead(); got != "closed" {
				t.Errorf("%v: %s", op, got)
			}
		}
	})
}

func TestContractMalformedRequestsAreAnsweredAndTakeAZxidIfTheyWouldHave(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t).mark()
		for _, op := range []jute.Op{jute.OpCreate, jute.OpCreate2, jute.OpDelete, jute.OpSetData, jute.OpSetACL, jute.OpMulti} {
			c.want(request{op: op, body: short{}}, "marshalling error")
		}
		for _, op := range []jute.Op{jute.OpExists, jute.OpGetData, jute.OpGetChildren, jute.OpGetChildren2, jute.OpGetACL, jute.OpSync, jute.OpSetWatches} {
			c.want(request{op: op, body: short{}}, "marshalling error")
		}
		for _, op := range []jute.Op{jute.OpGetData, jute.OpSetData, jute.OpExists, jute.OpDelete} { // the path is null
			if got := c.do(request{op: op, body: nullPath{}}); got != "marshalling error" && got != "bad arguments" {
				t.Errorf("%v of null: %s", op, got)
			}
		}
		c.do(create(s.root+"/x", ""))
		c.want(exists(s.root+"/x", false), "ok zxid +9+9+9 version 0,0,0 of nobody len 0 kids 0")
	})
}

// short ends before any request does.
type short struct{}

func (short) Encode(w *jute.Writer) { w.Int32(3) }

type nullPath struct{}

func (nullPath) Encode(w *jute.Writer) {
	w.Int32(-1)
	w.Int64(0)
}

func TestContractNonsenseOnTheWireEndsTheConnection(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		shaken := jute.Frame(jute.ConnectRequest{Timeout: 1000, Password: make([]byte, 16)})
		for name, bytes := range map[string][]byte{
			"negative length":      {0xff, 0xff, 0xff, 0xff},
			"empty handshake":      {0, 0, 0, 0, 0, 0, 0, 0},
			"short handshake":      {0, 0, 0, 4, 0, 0, 0, 0},
			"huge length":          {0x10, 0, 0, 0},
			"short request header": append(bytes.Clone(shaken), 0, 0, 0, 4, 0, 0, 0, 1),
			"huge request":         append(bytes.Clone(shaken), 0x10, 0, 0, 0),
		} {
			conn, err := net.Dial("tcp", s.addr)
			must.OK(t, err)
			defer conn.Close()
			if _, err := conn.Write(bytes); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(3 * time.Second))
			var b [4096]byte
			for err == nil {
				_, err = conn.Read(b[:])
			}
			if e := net.Error(nil); errors.As(err, &e) && e.Timeout() {
				t.Errorf("%s: still open", name)
			}
		}
	})
}

func TestContractRequestsMayBeSentAheadAndAreAnsweredInOrder(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		for range 50 {
			if _, err := c.Send(jute.OpCreate, jute.Create{Path: s.root + "/s", ACL: open, Flags: 2}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Send(jute.OpGetChildren, jute.PathWatch{Path: s.root}); err != nil {
				t.Fatal(err)
			}
		}
		var last int32
		var zxid int64
		for range 100 {
			p, err := c.Next()
			must.OK(t, err)
			if last != 0 && p.Xid != last+1 || p.Zxid < zxid {
				t.Fatalf("answer %d at %d after %d at %d", p.Xid, p.Zxid, last, zxid)
			}
			last, zxid = p.Xid, p.Zxid
		}
	})
}

func TestContractFourLetterWordsAreAnswered(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		c := s.client(t)
		c.want(get(s.root, true), `ok ""`)
		for word, wants := range map[string][]string{
			"ruok": {"imok"},
			"isro": {"rw"},
			"srvr": {"Zookeeper version: " + s.version(), "\nLatency min/avg/max: ", "\nReceived: ", "\nSent: ", "\nConnections: ",
				"\nOutstanding: 0\n", "\nZxid: 0x", "\nMode: standalone\n", "\nNode count: "},
			"conf": {"tickTime=100\n", "minSessionTimeout=200\n", "maxSessionTimeout=2000\n", "clientPort="},
		} {
			got := say(t, s.addr, word)
			for _, want := range wants {
				if !strings.Contains(got, want) {
					t.Errorf("%s lacks %q:\n%s", word, want, got)
				}
			}
		}
	})
}

func say(t *testing.T, addr, word string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	must.OK(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Write([]byte(word)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(conn); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
