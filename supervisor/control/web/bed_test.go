package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/testbed/must"
)

// fakeCluster behaves as a cluster does, in memory.
type fakeCluster struct {
	mu       sync.Mutex
	services map[string]map[string]election.Role // node to role, by service
	paused   map[string]string                   // why and by whom, by service
	history  []control.HistoryEntry
	broken   error
	slow     time.Duration // what a reading takes
	reads    int
	closed   int
	drained  []control.DrainedNode
	gone     []control.GoneNode
	orders   []string      // what was ordered beside pauses
	lengthy  time.Duration // what an order takes
	refusal  error         // of orders
}

func newCluster(services ...string) *fakeCluster {
	c := &fakeCluster{services: map[string]map[string]election.Role{}, paused: map[string]string{}}
	for _, name := range services {
		c.services[name] = map[string]election.Role{"a": election.RoleActive, "b": election.RoleStandby}
	}
	return c
}

func (c *fakeCluster) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// asked is how often ZooKeeper was read.
func (c *fakeCluster) asked() (n int) {
	c.change(func() { n = c.reads })
	return n
}

// read takes as long as a reading of ZooKeeper does.
func (c *fakeCluster) read(ctx context.Context) error {
	c.mu.Lock()
	c.reads++
	slow := c.slow
	c.mu.Unlock()
	select {
	case <-time.After(slow):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *fakeCluster) Status(ctx context.Context, _ ...string) (all control.Status, err error) {
	if err := c.read(ctx); err != nil {
		return all, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return all, c.broken
	}
	all = control.Status{Services: []control.ServiceStatus{}, Nodes: []control.NodeStatus{{Node: "a"}}, Drained: c.drained, Gone: c.gone}
	for _, name := range slices.Sorted(maps.Keys(c.services)) {
		s := control.ServiceStatus{Service: name, Paused: c.paused[name] != ""}
		for _, node := range []string{"a", "b"} {
			role := c.services[name][node]
			if role == election.RoleActive {
				s.Active = node
			}
			if role != "" {
				s.Members = append(s.Members, control.MemberStatus{Node: node, Role: role})
			}
		}
		all.Services = append(all.Services, s)
	}
	return all, nil
}

// unknown is what is said of a service that there is not.
func unknown(service string) error { return &control.UnknownError{Kind: "service", Name: service} }

func (c *fakeCluster) History(ctx context.Context, services ...string) (list []control.HistoryEntry, err error) {
	if err := c.read(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, service := range services {
		if c.services[service] == nil {
			return nil, unknown(service)
		}
	}
	for _, a := range c.history {
		if len(services) == 0 || slices.Contains(services, a.Service) {
			list = append(list, a)
		}
	}
	return list, c.broken
}

func (c *fakeCluster) Stop(ctx context.Context, service string, stopped bool, by, why string) (bool, error) {
	return true, c.order(ctx, service, fmt.Sprint("stop ", service, stopped, by, why))
}

func (c *fakeCluster) Pause(_ context.Context, service string, paused bool, by, why string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.services[service] == nil {
		return false, unknown(service)
	}
	was := c.paused[service] != ""
	if delete(c.paused, service); paused {
		c.paused[service] = why + " by " + by
	}
	return was != paused, c.broken
}

// order takes its time, as one does.
func (c *fakeCluster) order(ctx context.Context, service, words string) error {
	c.mu.Lock()
	lengthy, refusal := c.lengthy, c.refusal
	if c.services[service] == nil {
		refusal = unknown(service)
	}
	c.mu.Unlock()
	if refusal != nil {
		return refusal
	}
	select {
	case <-time.After(lengthy):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.change(func() { c.orders = append(c.orders, words) })
	return nil
}

func (c *fakeCluster) Switchover(ctx context.Context, h control.SwitchoverRequest) (string, error) {
	h.Tell("a is asked")
	return "b", c.order(ctx, h.Service, fmt.Sprint("switchover ", h.Service, h.To, h.Force, h.By))
}

func (c *fakeCluster) Restart(ctx context.Context, service, by string) error {
	return c.order(ctx, service, "restart "+service+by)
}

func (c *fakeCluster) Reload(ctx context.Context, service, by string) error {
	return c.order(ctx, service, "reload "+service+by)
}

func (c *fakeCluster) OrderCopy(ctx context.Context, r control.CopyRequest) error {
	return c.order(ctx, r.Service, r.Do+" "+r.Service+" on "+r.Node+" by "+r.By)
}

func (c *fakeCluster) Drain(ctx context.Context, d control.Draining) (bool, []control.Departure, error) {
	err := c.order(ctx, "db", fmt.Sprint("drain ", d.Node, d.Force, d.Why, d.By))
	return true, []control.Departure{{Service: "db"}}, err
}

func (c *fakeCluster) Undrain(ctx context.Context, node, _ string) (bool, error) {
	return false, c.order(ctx, "db", "undrain "+node)
}

func (c *fakeCluster) ordered() (all string) {
	c.change(func() { all = strings.Join(c.orders, "; ") })
	return all
}

func (c *fakeCluster) Close() { c.change(func() { c.closed++ }) }

// wire is a network of one server, inside a bubble.
type wire struct {
	dialed chan net.Conn
	ended  chan struct{}
	once   sync.Once
	ports  atomic.Int64
	serves func(net.Conn) net.Conn // what the server has of a connection; nil: the connection
}

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.dialed:
		return c, nil
	case <-w.ended:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error { w.once.Do(func() { close(w.ended) }); return nil }

func (w *wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8437} }

// caller is a connection from an address.
type caller struct {
	net.Conn
	from net.Addr
}

func (c caller) RemoteAddr() net.Addr { return c.from }

func (w *wire) dial() (net.Conn, error) { return w.dialFrom(1) }

func (w *wire) dialFrom(host byte) (net.Conn, error) {
	here, there := net.Pipe()
	if w.serves != nil {
		there = w.serves(there)
	}
	select {
	case w.dialed <- caller{there, &net.TCPAddr{IP: net.IPv4(10, 0, 0, host), Port: 1 + int(w.ports.Add(1))%60000}}:
		return here, nil
	case <-w.ended:
		return nil, errors.New("nobody listens")
	}
}

// bed is a server in a bubble, its cluster and its supervisor.
type bed struct {
	*testing.T
	*wire
	cluster *fakeCluster
	board   *Board
	server  *Server
	client  *http.Client
	token   string // "": nothing can be changed
	began   time.Time
	log     *logged
}

// logged is what the server logs.
type logged struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// inBubble calls f with a server of node a, which has a lease of a minute, and the services db and web.
func inBubble(t *testing.T, f func(b *bed)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bed{
			T: t, wire: &wire{dialed: make(chan net.Conn), ended: make(chan struct{})}, cluster: newCluster("db", "web"), token: "sesame", began: time.Now(),
			log: &logged{},
		}
		b.board = NewBoard(func() time.Duration { return time.Since(b.began) })
		b.board.Lease(control.LeaseStatus{Session: "0x1", End: time.Minute})
		b.server = New(Config{
			Listen: "127.0.0.1:8437", Node: "a", Hosts: []string{"understudy", "x"}, Version: "1.2.3", Board: b.board, Cluster: b.cluster, Logger: hclog.New(&hclog.LoggerOptions{Output: b.log}),
			Token: func() (string, error) {
				if b.token == "" {
					return "", errors.New("no such file")
				}
				return b.token, nil
			},
		})
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return b.dial() }}
		b.client = &http.Client{Transport: transport}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.server.Serve(ctx, b.wire) }()
		defer func() {
			cancel()
			must.Report(t, <-done)
			transport.CloseIdleConnections()
			time.Sleep(time.Second) // net/http waits so long until it closes a connection that was cut short
			if b.cluster.closed != 1 {
				t.Errorf("the cluster was closed %d times", b.cluster.closed)
			}
		}()
		f(b)
	})
}

func (b *bed) ask(method, path, body string, header ...string) (int, string, http.Header) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, "http://understudy"+path, strings.NewReader(body))
	must.OK(b, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := b.client.Do(req)
	must.OK(b, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must.OK(b, err)
	return resp.StatusCode, string(text), resp.Header
}

func (b *bed) get(path string) (int, string) {
	b.Helper()
	code, text, _ := b.ask("GET", path, "")
	return code, text
}
