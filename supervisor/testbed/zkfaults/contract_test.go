package zkfaults_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/election/zkmem"
	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
	"understudy/supervisor/testbed/zktest"
)

// The contract: every test that uses each runs against the real server, against zkmem, and against the servers that tests disturb, and
// wants the same of all.
// Ticks are short so that expiries are quick.
const tick = 100 * time.Millisecond

// genuine is one server for all tests of the package; nil where none is installed.
var genuine *zktest.Ensemble

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if need.Has("zookeeper") {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		e, err := zktest.New(ctx, zktest.Config{TickTime: tick})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer e.Close()
		genuine = e
	}
	return m.Run()
}

// version is how the servers under test call themselves: the embedded one as 3.8.0.
func (s site) version() string {
	if genuine == nil || s.addr != genuine.ClientAddrs()[0] {
		return "3.8.0-"
	}
	return zktest.Version() + "-"
}

// newer is what ZooKeeper 3.9 does in another way than 3.8, whose ways zkmem has: these tests do not ask a 3.9.
var newer = map[string]string{
	"TestContractEveryPermissionIsAskedFor":                               "exists needs the right to read",
	"TestContractATransactionSeesItsOwnSteps":                             "create2 in a transaction answers with the node's stat",
	"TestContractTheFirstStepThatFailsIsTheOneNamed":                      "flags that are none are a marshalling error",
	"TestContractMalformedRequestsAreAnsweredAndTakeAZxidIfTheyWouldHave": "a malformed request takes no zxid",
}

// site is a server under test, and a node of its own in it.
type site struct {
	addr string
	root string
}

var sites atomic.Int64

func each(t *testing.T, f func(t *testing.T, s site)) {
	t.Helper()
	run := func(name string, where func(t *testing.T) site) {
		t.Run(name, func(t *testing.T) {
			s := where(t)
			s.root = fmt.Sprintf("/t%d", sites.Add(1))
			s.client(t).want(create(s.root, ""), "ok "+s.root)
			f(t, s)
		})
	}
	run("zkmem", func(t *testing.T) site { return site{addr: listen(t, zkmem.New(tick))} })
	run("alone", func(t *testing.T) site { return site{addr: listen(t, zkfaults.New(zkfaults.Config{TickTime: tick}))} })
	run("follower", func(t *testing.T) site {
		e := zkfaults.NewEnsemble(zkfaults.Config{TickTime: tick}, zkfaults.EnsembleConfig{})
		t.Cleanup(func() { _ = e.Close() })
		return site{addr: listen(t, e.Server(1))}
	})
	if newer[t.Name()] != "" && !strings.HasPrefix(zktest.Version(), "3.8.") {
		return
	}
	run("real", func(t *testing.T) site {
		zktest.Need(t)
		return site{addr: genuine.ClientAddrs()[0]}
	})
}

// server is zkmem's, or one that tests disturb.
type server interface {
	Serve(net.Listener) error
	Close() error
}

// listen has a server serve a free port for as long as the test.
func listen(t testing.TB, s server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		must.Report(t, s.Close())
		if err := <-served; !errors.Is(err, zkmem.ErrClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// client is a raw client that writes down what it sees, so that a test reads as a list of requests and answers.
type client struct {
	*zktest.Raw
	t    *testing.T
	base int64 // zxids are shown relative to this one
}

func (s site) client(t *testing.T) *client {
	t.Helper()
	return s.hello(t, jute.ConnectRequest{Timeout: int32((20 * tick).Milliseconds())})
}

func (s site) hello(t *testing.T, hello jute.ConnectRequest) *client {
	t.Helper()
	raw, err := zktest.DialRaw(s.addr, hello)
	must.OK(t, err)
	c := &client{Raw: raw, t: t}
	t.Cleanup(func() {
		_, err := c.Call(jute.OpCloseSession, nil, nil)
		_ = c.Close()
		if err == nil {
			return
		}
		// The server has hung up. Left alone, its session would end, which takes a zxid, in the middle of a later test.
		hello := jute.ConnectRequest{Timeout: hello.Timeout, SessionID: c.Session.SessionID, Password: c.Session.Password}
		if again, err := zktest.DialRaw(s.addr, hello); err == nil {
			_, _ = again.Call(jute.OpCloseSession, nil, nil)
			_ = again.Close()
		}
	})
	return c
}

// request is one request and how its answer is shown.
type request struct {
	op   jute.Op
	body jute.Record
	show func(c *client, r *jute.Reader) string
}

// do sends a request and tells what came of it: events first, then "ok" with what the answer says, or the error.
func (c *client) do(q request) string {
	c.t.Helper()
	var raw rest
	header, err := c.Call(q.op, q.body, &raw)
	text := ""
	for _, ev := range c.TakeEvents() {
		text += showEvent(ev) + "; "
	}
	var code jute.Code
	switch {
	case errors.As(err, &code):
		return text + strings.TrimPrefix(code.Error(), "zookeeper: ")
	case err != nil:
		return text + "broken connection"
	}
	_ = header
	text += "ok"
	if q.show != nil {
		r := jute.NewReader(raw)
		text += " " + q.show(c, r)
		if r.Err() != nil || r.Remaining() != 0 {
			c.t.Errorf("%v: %d bytes left over, %v", q.op, r.Remaining(), r.Err())
		}
	} else if len(raw) != 0 {
		c.t.Errorf("%v: an answer of %d bytes", q.op, len(raw))
	}
	return text
}

func (c *client) want(q request, want string) {
	c.t.Helper()
	if got := c.do(q); got != want {
		c.t.Errorf("%v %+v:\n got %s\nwant %s", q.op, q.body, got, want)
	}
}

// mark makes zxids be shown relative to the present.
func (c *client) mark() *client {
	c.t.Helper()
	h, err := c.Call(jute.OpSync, jute.Path("/"), nil)
	must.OK(c.t, err)
	c.base = h.Zxid
	return c
}

// dead waits until the server has closed the connection, and returns the events that came before.
func (c *client) dead() string {
	c.t.Helper()
	text := ""
	for {
		p, err := c.Next()
		var late net.Error
		switch {
		case errors.As(err, &late) && late.Timeout():
			return text + "still open"
		case err != nil:
			return text + "closed"
		}
		var ev jute.WatchEvent
		if p.Xid == jute.XidNotification && jute.Unmarshal(p.Body, &ev) == nil {
			text += showEvent(ev) + "; "
		} else {
			text += fmt.Sprintf("answer %d %v; ", p.Xid, p.Code)
		}
	}
}

type rest []byte

func (r *rest) Decode(in *jute.Reader) { *r = in.Rest() }
