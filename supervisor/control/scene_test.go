package control

import (
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
)

const root = "/understudy"

// bed is a cluster to look at, and the means to stage it.
type bed struct {
	*testing.T
	addr string
	c    *Cluster
}

func newBed(t *testing.T) *bed {
	server := zkfaults.New(zkfaults.Config{TickTime: 50 * time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return bedOn(t, l.Addr().String())
}

func bedOn(t *testing.T, addr string) *bed {
	c, err := Open(t.Context(), election.Config{Servers: []string{addr}, Root: root, Lease: 2 * time.Second, Logger: hclog.NewNullLogger()})
	must.OK(t, err)
	t.Cleanup(c.Close)
	return &bed{t, addr, c}
}

// session is a supervisor's, as far as ZooKeeper can tell.
func (b *bed) session() *actor {
	conn, events, err := zk.Connect([]string{b.addr}, 20*time.Second, zk.WithLogInfo(false))
	must.OK(b, err)
	for ev := range events {
		if ev.State == zk.StateHasSession {
			break
		}
	}
	b.Cleanup(conn.Close)
	return &actor{b, conn}
}

type actor struct {
	*bed
	conn *zk.Conn
}

func (a *actor) id() string { return election.SessionName(a.conn.SessionID()) }

// put creates a znode with all that is above it.
func (a *actor) put(path string, v any, flags int32) {
	a.Helper()
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i := 1; i < len(parts); i++ {
		_, err := a.conn.Create("/"+strings.Join(parts[:i], "/"), nil, 0, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			a.Fatal(err)
		}
	}
	data, ok := v.([]byte)
	if !ok {
		var err error
		if data, err = json.Marshal(v); err != nil {
			a.Fatal(err)
		}
	}
	if _, err := a.conn.Create(path, data, flags, zk.WorldACL(zk.PermAll)); err != nil {
		a.Fatalf("create %s: %v", path, err)
	}
}

func (a *actor) del(path string) {
	a.Helper()
	if err := a.conn.Delete(path, -1); err != nil {
		a.Fatalf("delete %s: %v", path, err)
	}
}

func (b *bed) has(path string) bool {
	b.Helper()
	n, err := b.c.read(b.Context(), path)
	must.OK(b, err)
	return n.exists
}

var began = time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)

func paths(service string) election.Paths { return election.Paths{Root: root, Service: service} }

// activate makes a the active node of a service: lock, breadcrumb and member.
func (a *actor) activate(service, node string) {
	a.Helper()
	a.lock(service, node)
	a.crumb(service, node)
	a.member(service, node, "active", "")
}

func (a *actor) lock(service, node string) {
	a.claim(service)
	a.Helper()
	a.put(paths(service).Lock(), election.Lock{Node: node, Host: node + ".example", Pid: 7, Since: began}, zk.FlagEphemeral)
}

func (a *actor) crumb(service, node string) {
	a.Helper()
	a.put(paths(service).Crumb(), election.BreadCrumb{Node: node, Host: node + ".example", Session: a.id()}, 0)
}

func (a *actor) member(service, node string, role election.Role, why string) {
	a.Helper()
	m := election.Member{Node: node, Host: node + ".example", Role: role, Health: "ok", Why: why, Since: began}
	a.put(paths(service).Members()+"/"+node, m, zk.FlagEphemeral)
}

func (b *bed) status(names ...string) Status {
	b.Helper()
	s, err := b.c.Status(b.Context(), names...)
	must.OK(b, err)
	return s
}

// memberNames is who is listed, in that order.
func memberNames(s ServiceStatus) []string {
	var names []string
	for _, m := range s.Members {
		names = append(names, m.Node)
	}
	return slices.Clip(names)
}

// claim raises the number of claims, as every claim does.
func (a *actor) claim(service string) {
	a.Helper()
	dir := paths(service).Dir()
	if ok, _, err := a.conn.Exists(dir); !ok || err != nil {
		a.put(dir, struct{}{}, 0)
	}
	if _, err := a.conn.Set(dir, []byte("{}"), -1); err != nil {
		a.Fatal(err)
	}
}
