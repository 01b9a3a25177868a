package kit

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Cluster is a test's own look at Understudy's znodes.
type Cluster struct {
	conn *zk.Conn
	root string
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// Look connects to ZooKeeper. What it shows is below root.
func Look(tb testing.TB, servers []string, root string) *Cluster {
	tb.Helper()
	var trouble error
	for range 5 {
		conn, err := connect(servers)
		if err == nil {
			tb.Cleanup(conn.Close)
			return &Cluster{conn: conn, root: root}
		}
		trouble = err
	}
	tb.Fatal(trouble)
	return nil
}

// connect waits for the session: the client alone would wait half a minute for a handshake that got lost.
func connect(servers []string) (*zk.Conn, error) {
	conn, events, err := zk.Connect(servers, 15*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	late := time.After(Soon / 5)
	for {
		select {
		case ev := <-events:
			if ev.State == zk.StateHasSession {
				return conn, nil
			}
		case <-late:
			conn.Close()
			return nil, fmt.Errorf("no session from %v", servers)
		}
	}
}

// Conn is for what a Cluster has no word for.
func (c *Cluster) Conn() *zk.Conn { return c.conn }

// Node is the data of one of Understudy's znodes, as far as tests look at it.
type Node struct {
	Node, Role, Health, Why, Reason string
	Host                            string
	Pid                             int
	Token                           int64
	GuardianPid                     int `json:"guardian_pid"`
	Start, Since                    time.Time
	End                             *time.Time

	Owner int64 `json:"-"` // the session it is bound to
	Czxid int64 `json:"-"`
}

// Path is a znode's full path; the parts are below the root.
func (c *Cluster) Path(parts ...string) string {
	return path.Join(append([]string{c.root}, parts...)...)
}

// read reads a znode. A connection that is lost as the machine stands still has it read again, for a while.
func (c *Cluster) read(parts []string) (data []byte, stat *zk.Stat, err error) {
	Reached(Stall, func() bool {
		data, stat, err = c.conn.Get(c.Path(parts...))
		return !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrSessionExpired) && !errors.Is(err, zk.ErrNoServer)
	})
	return data, stat, err
}

// Get reads a znode; ok is false when it does not exist, or cannot be read now.
func (c *Cluster) Get(parts ...string) (n Node, ok bool) {
	data, stat, err := c.read(parts)
	if err != nil || json.Unmarshal(data, &n) != nil {
		return n, false
	}
	n.Owner, n.Czxid = stat.EphemeralOwner, stat.Czxid
	return n, true
}

// Sync has what is read next be as new as what anybody was told before: a server that follows may not know yet what its leader
// has acknowledged.
func (c *Cluster) Sync(tb testing.TB) {
	tb.Helper()
	Until(tb, Soon, "the servers are in step", func() bool { _, err := c.conn.Sync(c.root); return err == nil })
}

// Gone tells that a znode surely does not exist.
func (c *Cluster) Gone(parts ...string) bool {
	_, _, err := c.read(parts)
	return errors.Is(err, zk.ErrNoNode)
}

// Lock is who is active.
func (c *Cluster) Lock(service string) (Node, bool) {
	return c.Get("services", service, "ActiveStandbyElectorLock")
}

// BreadCrumb is whose child may be running.
func (c *Cluster) BreadCrumb(service string) (Node, bool) {
	return c.Get("services", service, "ActiveBreadCrumb")
}

// NoBreadCrumb tells that there surely is none.
func (c *Cluster) NoBreadCrumb(service string) bool {
	return c.Gone("services", service, "ActiveBreadCrumb")
}

// Member is what a candidate says of itself.
func (c *Cluster) Member(service, node string) (Node, bool) {
	return c.Get("services", service, "members", node)
}

// WaitStandby waits until a node stands by.
func (c *Cluster) WaitStandby(tb testing.TB, limit time.Duration, service, node string) {
	tb.Helper()
	Until(tb, limit, node+" stands by for "+service, func() bool {
		m, ok := c.Member(service, node)
		return ok && m.Role == "standby"
	})
}

// Deleted is closed when a znode that exists now has been deleted.
func (c *Cluster) Deleted(tb testing.TB, parts ...string) <-chan struct{} {
	tb.Helper()
	c.Sync(tb)
	path := c.Path(parts...)
	var events <-chan zk.Event
	Until(tb, Soon, path+" is watched", func() bool {
		exists, _, ch, err := c.conn.ExistsW(path)
		if err == nil && !exists {
			tb.Fatalf("there is no %s", path)
		}
		events = ch
		return err == nil
	})
	deleted := make(chan struct{})
	go func() {
		for {
			if ev := <-events; ev.Type == zk.EventNodeDeleted { // any other event is the last of its channel, as when a session ends
				close(deleted)
				return
			}
			for ; ; <-time.After(pollEvery) {
				exists, _, ch, err := c.conn.ExistsW(path)
				if err == nil && !exists {
					close(deleted)
				}
				if err == nil && !exists || errors.Is(err, zk.ErrClosing) {
					return
				}
				if events = ch; err == nil {
					break
				}
			}
		}
	}()
	return deleted
}
