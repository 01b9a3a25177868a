package zkmem_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election/zkmem"
)

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func connect(t *testing.T, addr string, opts ...any) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	dial, session := net.DialTimeout, 2*time.Second
	for _, o := range opts {
		switch o := o.(type) {
		case time.Duration:
			session = o
		case func(network, addr string, timeout time.Duration) (net.Conn, error):
			dial = o
		}
	}
	conn, events, err := zk.Connect([]string{addr}, session, zk.WithLogger(quiet{}), zk.WithDialer(dial))
	if err != nil {
		t.Fatal(err)
	}
	for ev := range events {
		if ev.State == zk.StateHasSession {
			return conn, events
		}
	}
	t.Fatal("no session")
	return nil, nil
}

func next(t *testing.T, events <-chan zk.Event) zk.Event {
	t.Helper()
	select {
	case ev := <-events:
		return ev
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
		return zk.Event{}
	}
}

func TestContractTheGoClientGetsAlong(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		a, _ := connect(t, s.addr)
		defer a.Close()
		b, _ := connect(t, s.addr)
		defer b.Close()
		lock := s.root + "/lock"

		if err := a.AddAuth("digest", []byte("alice:secret")); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Create(lock, []byte("a"), zk.FlagEphemeral, zk.AuthACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Get(lock); !errors.Is(err, zk.ErrNoAuth) {
			t.Error(err)
		}
		if err := b.AddAuth("digest", []byte("alice:secret")); err != nil { // else it would not hear of the deletion
			t.Fatal(err)
		}
		exists, stat, gone, err := b.ExistsW(lock)
		if !exists || stat.EphemeralOwner != a.SessionID() || err != nil {
			t.Error(exists, stat, err)
		}
		if _, err := b.Create(lock, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); !errors.Is(err, zk.ErrNodeExists) {
			t.Error(err)
		}
		crumb := s.root + "/crumb"
		if _, err := a.Multi(&zk.CreateRequest{Path: crumb, Acl: zk.WorldACL(zk.PermAll)}, &zk.DeleteRequest{Path: lock, Version: 0}); err != nil {
			t.Error(err)
		}
		if ev := next(t, gone); ev.Type != zk.EventNodeDeleted || ev.Path != lock {
			t.Error(ev)
		}
		res, err := b.Multi(&zk.CheckVersionRequest{Path: crumb, Version: 0}, &zk.SetDataRequest{Path: crumb, Data: []byte("b"), Version: 0},
			&zk.CheckVersionRequest{Path: crumb, Version: 0}, &zk.DeleteRequest{Path: crumb})
		if !errors.Is(err, zk.ErrBadVersion) || len(res) != 4 {
			t.Error(res, err)
		}
		if kids, _, err := b.Children(s.root); err != nil || len(kids) != 1 || kids[0] != "crumb" {
			t.Error(kids, err)
		}
		if p, err := b.CreateProtectedEphemeralSequential(s.root+"/q-", nil, zk.WorldACL(zk.PermAll)); err != nil || p[len(p)-10:] != "0000000002" {
			t.Error(p, err)
		}
		if p, err := b.Sync(s.root); err != nil || p != s.root {
			t.Error(p, err)
		}
		if acl, _, err := b.GetACL(crumb); err != nil || len(acl) != 1 || acl[0] != zk.WorldACL(zk.PermAll)[0] {
			t.Error(acl, err)
		}
	})
}

func TestContractTheGoClientsWordParses(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		if ok := zk.FLWRuok([]string{s.addr}, time.Second); !ok[0] { // FLWSrvr is older than these servers and can parse neither's answer
			t.Error("not ok")
		}
	})
}

// It has no watch to put back: the client races with itself over that, and the raw one tests setWatches better.
func TestTheGoClientKeepsItsSessionOverARestart(t *testing.T) {
	mem, addr := serve(t, zkmem.Config{TickTime: slowTick})
	c, events := connect(t, addr, 20*slowTick) // the client waits for a second before it comes back
	defer c.Close()
	id := c.SessionID()
	if _, err := c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	mem.ElectLeader()
	for next(t, events).State != zk.StateHasSession {
	}
	if c.SessionID() != id {
		t.Errorf("session %#x after %#x", c.SessionID(), id)
	}
	if _, err := c.Set("/e", []byte("x"), 0); err != nil {
		t.Error(err)
	}
}

func TestTheGoClientRunsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := zkmem.New(zkmem.Config{})
		done := make(chan struct{}, 16)
		dials := 0
		dial := func(string, string, time.Duration) (net.Conn, error) {
			near, far := net.Pipe()
			dials++
			go func() {
				mem.ServeConn(far)
				done <- struct{}{}
			}()
			return near, nil
		}
		start := time.Now()
		c, events := connect(t, "10.0.0.1:2181", dial)
		if _, err := c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := len(mem.Sessions()); got != 1 {
			t.Errorf("%d sessions after an idle hour", got)
		}
		heal := mem.Cut(zkmem.Everyone, zkmem.Both)
		time.Sleep(10 * time.Second)
		if got := len(mem.Sessions()); got != 0 {
			t.Errorf("%d sessions after a cut", got)
		}
		heal()
		for ev := range events {
			if ev.State == zk.StateExpired {
				break
			}
		}
		if took := time.Since(start); took > time.Hour+30*time.Second {
			t.Errorf("expired after %v", took)
		}
		c.Close()
		_ = mem.Close()
		for range dials {
			<-done
		}
	})
}
