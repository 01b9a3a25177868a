package service

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/child"
	"understudy/supervisor/child/box"
	"understudy/supervisor/control"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/host"
	"understudy/supervisor/testbed/zkfaults"
)

// made is a service of an empty node; change may add to that.
func made(t *testing.T, conf Conf, change func(*LocalNode)) *Service {
	t.Helper()
	cluster := fnv.New64a()
	_, _ = cluster.Write([]byte(t.Name()))
	n := &LocalNode{
		Self: election.Node{Node: "a", Host: "a", Machine: "m1", Boot: "b1"}, Cluster: strconv.FormatUint(cluster.Sum64(), 36),
		Machine: empty{}, Promises: failsafe.NewPromises(), Spread: NewSpread(), Observer: unobserved{}, Logger: hclog.NewNullLogger(),
		Guard:        func() host.Guard { return haunted{} },
		AgentAddress: func(*election.Session) string { return "" },
		Broken:       func(err error) { t.Error(err) }, // no test has the machine told what it does not expect, unless it says so
	}
	if change != nil {
		change(n)
	}
	conf.Eligible = true
	if conf.Name == "" {
		conf.Name = "db"
	}
	return New(n, conf)
}

// testStay is a stay of the service in a session, with a tree. It has neither claim nor candidate.
func (v *Service) testStay(ctx context.Context, s Session, tree host.Tree) *stay {
	h := newStay(ctx, v, s)
	h.candidacy.tree, h.candidacy.end = tree, func(error) {}
	return h
}

type unobserved struct{}

func (unobserved) State(control.LocalStatus)            {}
func (unobserved) Fenced(string, string, time.Duration) {}
func (unobserved) Restarted(string)                     {}
func (unobserved) Claimed(string)                       {}
func (unobserved) Announced(string)                     {}

// empty is a machine on which nothing runs, and whose clock is far from the end of any lease.
type empty struct{ host.Machine }

func (empty) Now() time.Duration                                 { return -time.Hour }
func (empty) KillTree(context.Context, json.RawMessage) error    { return nil }
func (empty) Outlasted(json.RawMessage, fencing.ProcessID) error { return nil }
func (empty) PendingEffects(fencing.Target, string) []string     { return nil }

// haunted is a guard of a machine on which something may be left of a previous supervisor.
type haunted struct {
	host.Guard
	left func() *box.Leftover
}

func (haunted) Kind() string                                        { return box.KindCgroup }
func (haunted) Pid() int                                            { return 1 }
func (haunted) Finish(uint64) error                                 { return nil }
func (haunted) Over(uint64) <-chan struct{}                         { return nil }
func (haunted) CheckWatchdog(context.Context, child.Watchdog) error { return nil }

func (h haunted) Leftover(context.Context, string, json.RawMessage) *box.Leftover {
	if h.left == nil {
		return nil
	}
	return h.left()
}

// endingTree is a tree whose End returns err; if that is ErrUnproved, as late as it may.
type endingTree struct {
	host.Tree
	err   error
	ended int

	settled []bool // what the guardians are told of its effects
}

func (g *endingTree) ReportUndone(undone bool) { g.settled = append(g.settled, undone) }

func (*endingTree) ID() (json.RawMessage, error) { return json.RawMessage(`{"tree":1}`), nil }

func (g *endingTree) End(ctx context.Context) error {
	if g.ended++; errors.Is(g.err, box.ErrUnproved) {
		<-ctx.Done()
	}
	return g.err
}

// ensemble is a ZooKeeper in which a test has one session after the other.
type ensemble struct {
	t      *testing.T
	server *zkfaults.Server
	began  time.Time
	self   election.Node

	latency time.Duration // of each answer
	timeout time.Duration // of the sessions
	seen    time.Duration // the longest one of any node
	log     hclog.Logger
}

func newEnsemble(t *testing.T) *ensemble {
	e := &ensemble{t: t, server: zkfaults.New(zkfaults.Config{TickTime: 500 * time.Millisecond}), began: time.Now()}
	e.self, e.timeout = election.Node{Node: "a", Host: "a", Machine: "m1", Boot: "b1"}, 4*time.Second
	e.log = hclog.NewNullLogger()
	return e
}

func (e *ensemble) Now() time.Duration { return time.Since(e.began) + time.Hour }

func (e *ensemble) dial() net.Conn {
	ours, theirs := net.Pipe()
	go e.server.ServeConn(slow{theirs, e.latency})
	return ours
}

// slow is a connection on which each message takes a while.
type slow struct {
	net.Conn
	latency time.Duration
}

func (s slow) Write(b []byte) (int, error) {
	time.Sleep(s.latency)
	return s.Conn.Write(b)
}

// byHand writes a znode as an operator would.
func (e *ensemble) byHand(path, data string) {
	e.connected(func(conn *zk.Conn) error { _, err := conn.Set(path, []byte(data), -1); return err })
}

// make makes one.
func (e *ensemble) make(path, data string) {
	e.connected(func(conn *zk.Conn) error {
		_, err := conn.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll))
		return err
	})
}

func (e *ensemble) connected(do func(*zk.Conn) error) {
	conn, _, err := zk.Connect([]string{"127.0.0.1:2181"}, e.timeout, zk.WithLogInfo(false),
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return e.dial(), nil }))
	if err == nil {
		defer conn.Close()
		err = do(conn)
	}
	if err != nil {
		e.t.Error(err)
	}
}

// session calls f in a session.
func (e *ensemble) session(f func(context.Context, *election.Session) error) {
	e.t.Helper()
	if err := e.open(f); err != nil {
		e.t.Fatal(err)
	}
}

// open is session for one that ends with an error.
func (e *ensemble) open(f func(context.Context, *election.Session) error) error {
	of := election.New(election.Config{
		Servers: []string{"zk:2181"}, Root: "/understudy", Lease: e.timeout, Node: e.self, Logger: e.log, Now: e.Now, Seen: e.seen,
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return e.dial(), nil
		},
	})
	err := of.Open(e.t.Context(), f)
	of.Wait()
	return err
}
