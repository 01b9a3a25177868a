package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zktest"
	"understudy/supervisor/wait"
)

// cutter carries connections to a server, and cuts them.
type cutter struct {
	net.Listener
	server string

	mu      sync.Mutex // guards the fields below
	carried [2]*net.TCPConn
	refused int // connections on which the server has said nothing
}

func (c *cutter) serve() {
	for {
		ours, err := c.Accept()
		if err != nil {
			return
		}
		theirs, err := net.Dial("tcp", c.server)
		if err != nil {
			_ = ours.Close()
			continue
		}
		c.mu.Lock()
		c.carried = [2]*net.TCPConn{ours.(*net.TCPConn), theirs.(*net.TCPConn)}
		c.mu.Unlock()
		go func() {
			if _, err := io.Copy(theirs, ours); err == nil { // else it was cut, which the server may not know
				_ = theirs.(*net.TCPConn).CloseWrite()
			}
		}()
		go func() {
			n, _ := io.Copy(ours, theirs)
			if n == 0 {
				c.mu.Lock()
				c.refused++
				c.mu.Unlock()
			}
			_ = ours.Close()
		}()
	}
}

func (c *cutter) refusals() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// cut resets the client's end, and the server's so much later.
func (c *cutter) cut(late time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	carried := c.carried
	for i, end := range carried {
		reset := func() {
			_ = end.SetLinger(0)
			_ = end.Close()
		}
		if i == 0 || late == 0 {
			reset()
		} else {
			time.AfterFunc(late, reset)
		}
	}
}

// P7: where a server takes one connection from a host, a connection that is cut costs no session, if the server learns of the cut within the
// lease: until then it refuses the next one.
func TestACutConnectionCostsNoSessionThoughAServerTakesOne(t *testing.T) {
	const lease, cuts = 6 * time.Second, 5
	e := zktest.Start(t, zktest.Config{ExtraLines: []string{"maxClientCnxns=1"}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	c := &cutter{Listener: l, server: e.ClientAddrs()[0]}
	go c.serve()
	sessions := election.New(election.Config{
		Servers: []string{l.Addr().String()}, Root: "/understudy", Lease: lease, Now: wire.Now, Logger: hclog.NewNullLogger(),
		Node: election.Node{Node: "a", Host: "a", Machine: "m", Boot: "b"},
	})
	for _, late := range []time.Duration{0, lease / 3} {
		var took []time.Duration
		err := sessions.Open(t.Context(), func(ctx context.Context, s *election.Session) error {
			for range cuts {
				cut := wire.Now()
				c.cut(late)
				for s.Lease.End() <= cut+lease { // no heartbeat that was sent since is acknowledged
					if !wait.For(ctx, time.Millisecond) {
						return fmt.Errorf("after %v: %w", wire.Now()-cut, context.Cause(ctx))
					}
				}
				took = append(took, (wire.Now() - cut).Round(time.Millisecond))
			}
			return nil
		})
		t.Logf("the server learns of it %v later: heartbeats are acknowledged again after %v", late, took)
		if err != nil {
			t.Errorf("cut %d: %v", len(took)+1, err)
		}
	}
	if c.refusals() == 0 {
		t.Error("the server takes more than one connection")
	}
}
