package zkfaults_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
	"understudy/supervisor/testbed/zktest"
)

// named is a connection in memory that has an address.
type named struct {
	net.Conn
	addr net.Addr
}

func (n named) RemoteAddr() net.Addr { return n.addr }

// inMemory runs f in a bubble, with a server and a way to connect to it as if from an address.
func inMemory(t *testing.T, cfg zkfaults.Config, f func(t *testing.T, mem *zkfaults.Server, dial func(from string) net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mem := zkfaults.New(cfg)
		served := make(chan struct{}, 64)
		started := 0
		f(t, mem, func(from string) net.Conn {
			near, far := net.Pipe()
			addr := &net.TCPAddr{IP: net.ParseIP(from), Port: 1000 + started}
			started++
			go func() {
				mem.ServeConn(named{far, addr})
				served <- struct{}{}
			}()
			return near
		})
		must.Report(t, mem.Close())
		for range started {
			<-served
		}
	})
}

func greet(t *testing.T, nc net.Conn, hello jute.ConnectRequest) *client {
	t.Helper()
	raw, err := zktest.NewRaw(nc, hello)
	must.OK(t, err)
	t.Cleanup(func() { _ = raw.Close() })
	return &client{Raw: raw, t: t}
}

var fourSeconds = jute.ConnectRequest{Timeout: 4000}

func TestASessionEndsOnTheTickAfterItsTimeout(t *testing.T) {
	inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
		start := time.Now()
		c := greet(t, dial("10.0.0.1"), fourSeconds)
		c.want(createAs("/e", "", open, 1), "ok /e")
		time.Sleep(1900 * time.Millisecond)
		c.want(ping, "ok") // 5.9 s, so at 6 s
		other := greet(t, dial("10.0.0.2"), jute.ConnectRequest{Timeout: 40000})
		other.want(exists("/e", true), other.do(exists("/e", false)))
		other.Patience = time.Minute
		if p, err := other.Next(); err != nil || p.Xid != jute.XidNotification {
			t.Fatal(p, err)
		}
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("ended after %v", took)
		}
		if got := c.dead(); got != "closed" {
			t.Error(got)
		}
	})
}

func TestACutConnectionCarriesNothingAndNeitherSideLearnsOfTheOthersEnd(t *testing.T) {
	inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
		c := greet(t, dial("10.0.0.1"), fourSeconds)
		c.want(createAs("/e", "", open, 1), "ok /e")
		mem.Cut(zkfaults.Session(c.Session.SessionID), zkfaults.Both)
		c.Patience = 30 * time.Second
		if got := c.do(ping); got != "broken connection" {
			t.Error(got)
		}
		if got := len(mem.Sessions()); got != 0 {
			t.Errorf("%d sessions", got)
		}
		c.Patience = time.Second
		if got := c.dead(); got != "still open" {
			t.Errorf("the end of the session got through the cut: %s", got)
		}
		mem.Heal()
		if got := c.dead(); got != "closed" {
			t.Error(got)
		}
	})
}

func TestACutHoldsBackWhatArrivesWhenItIsHealed(t *testing.T) {
	for name, way := range map[string]zkfaults.Direction{"in": zkfaults.Inbound, "out": zkfaults.Outbound, "both": zkfaults.Both} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
				c := greet(t, dial("10.0.0.1"), jute.ConnectRequest{Timeout: 30000})
				other := greet(t, dial("10.0.0.2"), jute.ConnectRequest{Timeout: 30000})
				from := zkfaults.From(func(a net.Addr) bool { return a.(*net.TCPAddr).IP.String() == "10.0.0.1" })
				heal := mem.Cut(from, way)
				if _, err := c.Send(jute.OpCreate, jute.Create{Path: "/x", ACL: open}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				applied := other.do(exists("/x", false)) != "no node"
				if applied != (way == zkfaults.Outbound) {
					t.Errorf("applied: %v", applied)
				}
				time.Sleep(3 * time.Second)
				heal()
				if p, err := c.Next(); err != nil || p.Code != jute.OK {
					t.Error(p, err)
				}
			})
		})
	}
}

func TestACutBySessionStopsItsTakeoverToo(t *testing.T) {
	inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
		c := greet(t, dial("10.0.0.1"), fourSeconds)
		mem.Cut(zkfaults.Session(c.Session.SessionID), zkfaults.Both)
		hello := jute.ConnectRequest{Timeout: 4000, SessionID: c.Session.SessionID, Password: c.Session.Password}
		if _, err := zktest.NewRaw(dial("10.0.0.1"), hello); err == nil {
			t.Error("the session was taken over through a cut")
		}
		greet(t, dial("10.0.0.1"), fourSeconds).want(ping, "ok")
	})
}

func TestADelayIsAddedToBothWays(t *testing.T) {
	inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
		c := greet(t, dial("10.0.0.1"), jute.ConnectRequest{Timeout: 30000})
		end := mem.Delay(zkfaults.Everyone, 300*time.Millisecond)
		before := time.Now()
		c.want(ping, "ok")
		if took := time.Since(before); took != 600*time.Millisecond {
			t.Errorf("took %v", took)
		}
		end()
		before = time.Now()
		c.want(ping, "ok")
		if took := time.Since(before); took != 0 {
			t.Errorf("took %v", took)
		}
	})
}

func TestTrapsActOnTheRequestsTheyMatch(t *testing.T) {
	for _, test := range []struct {
		name    string
		set     func(mem *zkfaults.Server)
		got     string
		applied bool
		then    string
	}{
		{"close before", func(mem *zkfaults.Server) { mem.CloseBefore(zkfaults.Match{Path: "lock"}) }, "broken connection", false, "closed"},
		{"close after", func(mem *zkfaults.Server) { mem.CloseAfter(zkfaults.Match{Op: jute.OpCreate}) }, "broken connection", true, "closed"},
		{"lose the reply", func(mem *zkfaults.Server) { mem.LoseReply(zkfaults.Match{Op: jute.OpCreate, Path: "lock"}) }, "broken connection", true, "still open"},
		{"refuse", func(mem *zkfaults.Server) { mem.Refuse(zkfaults.Match{Path: "lock"}, jute.SessionExpired) }, "session expired", false, "still open"},
		{"match another", func(mem *zkfaults.Server) { mem.CloseBefore(zkfaults.Match{Op: jute.OpCreate, Path: "luck"}) }, "ok [create/0 /lock]", true, "still open"},
		{"match another op", func(mem *zkfaults.Server) { mem.CloseBefore(zkfaults.Match{Op: jute.OpDelete}) }, "ok [create/0 /lock]", true, "still open"},
		{"match another session", func(mem *zkfaults.Server) { mem.CloseBefore(zkfaults.Match{Session: 1}) }, "ok [create/0 /lock]", true, "still open"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
				c := greet(t, dial("10.0.0.1"), jute.ConnectRequest{Timeout: 40000})
				c.want(children("/", true), "ok zookeeper")
				test.set(mem)
				got := c.do(multi(jute.CreateOp(jute.Create{Path: "/lock", ACL: open})))
				if got != test.got && got != "children /; "+test.got {
					t.Errorf("got %s", got)
				}
				if got := c.dead(); got != test.then {
					t.Errorf("then %s", got)
				}
				other := greet(t, dial("10.0.0.2"), fourSeconds)
				if applied := other.do(exists("/lock", false)) != "no node"; applied != test.applied {
					t.Errorf("applied: %v", applied)
				}
				other.want(create("/lock2", ""), "ok /lock2") // it acts once
			})
		})
	}
}

func TestATrapActsAsOftenAsItSays(t *testing.T) {
	inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
		c := greet(t, dial("10.0.0.1"), fourSeconds)
		mem.Refuse(zkfaults.Match{Path: "x", Count: 2}, jute.NoAuth)
		for _, want := range []string{"no auth", "no auth", "ok /x"} {
			c.want(create("/x", ""), want)
		}
		mem.Refuse(zkfaults.Match{Op: jute.OpPing, Count: zkfaults.Always}, jute.SystemError)
		for range 5 {
			c.want(ping, "system error")
		}
		mem.Forget()
		c.want(ping, "ok")
	})
}

func TestALostHandshakeLeavesASessionNobodyKnows(t *testing.T) {
	inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
		mem.CloseAfter(zkfaults.Match{Op: jute.OpCreateSession})
		if _, err := zktest.NewRaw(dial("10.0.0.1"), fourSeconds); err == nil {
			t.Error("the handshake was answered")
		}
		if got := len(mem.Sessions()); got != 1 {
			t.Errorf("%d sessions", got)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if got := len(mem.Sessions()); got != 0 {
			t.Errorf("%d sessions after its timeout", got)
		}
	})
}

func TestExpireEndsASessionAtOnce(t *testing.T) {
	inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
		c, other := greet(t, dial("10.0.0.1"), fourSeconds), greet(t, dial("10.0.0.2"), fourSeconds)
		c.want(createAs("/e", "", open, 1), "ok /e")
		other.want(children("/", true), "ok e zookeeper")
		if !mem.Expire(c.Session.SessionID) || mem.Expire(c.Session.SessionID) {
			t.Error("a session expires once")
		}
		other.want(sync, "children /; ok /")
		if got := c.dead(); got != "closed" {
			t.Error(got)
		}
		hello := jute.ConnectRequest{Timeout: 4000, SessionID: c.Session.SessionID, Password: c.Session.Password}
		if _, err := zktest.NewRaw(dial("10.0.0.1"), hello); !errors.Is(err, zktest.ErrRefused) {
			t.Error(err)
		}
	})
}

func TestWipeForgetsEverythingAndRefusesWhoRemembers(t *testing.T) {
	inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
		c := greet(t, dial("10.0.0.1"), fourSeconds)
		c.want(create("/x", ""), "ok /x")
		mem.Wipe()
		if got := c.dead(); got != "closed" {
			t.Error(got)
		}
		hello := jute.ConnectRequest{Timeout: 4000, SessionID: c.Session.SessionID, Password: c.Session.Password, LastZxidSeen: 2}
		if _, err := zktest.NewRaw(dial("10.0.0.1"), hello); err == nil || errors.Is(err, zktest.ErrRefused) {
			t.Errorf("who has seen more than there is must be hung up on: %v", err)
		}
		hello.LastZxidSeen = 0
		if _, err := zktest.NewRaw(dial("10.0.0.1"), hello); !errors.Is(err, zktest.ErrRefused) {
			t.Error(err)
		}
		again := greet(t, dial("10.0.0.1"), fourSeconds)
		again.want(children("/", false), "ok zookeeper")
		if again.Session.SessionID == c.Session.SessionID || mem.Zxid() != 1 {
			t.Errorf("session %#x again, zxid %d", again.Session.SessionID, mem.Zxid())
		}
	})
}

func TestAServerThatWasDownGivesEverySessionItsTimeAgain(t *testing.T) {
	inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
		c := greet(t, dial("10.0.0.1"), fourSeconds)
		c.want(createAs("/e", "", open, 1), "ok /e")
		mem.Down()
		if got := c.dead(); got != "closed" {
			t.Error(got)
		}
		if _, err := zktest.NewRaw(dial("10.0.0.1"), fourSeconds); err == nil {
			t.Error("a server that is down answered")
		}
		time.Sleep(time.Minute)
		mem.Up()
		time.Sleep(3900 * time.Millisecond)
		hello := jute.ConnectRequest{Timeout: 4000, SessionID: c.Session.SessionID, Password: c.Session.Password}
		again := greet(t, dial("10.0.0.1"), hello)
		again.want(children("/", false), "ok e zookeeper")
		mem.ElectLeader()
		again = greet(t, dial("10.0.0.1"), hello)
		again.want(create("/new", ""), "ok /new")
		if mem.Zxid() != 1<<32|1 {
			t.Errorf("zxid %#x", mem.Zxid())
		}
	})
}

func TestCloseEndsWhatIsCutOffAsWell(t *testing.T) {
	inMemory(t, zkfaults.Config{}, func(t *testing.T, mem *zkfaults.Server, dial func(string) net.Conn) {
		c := greet(t, dial("10.0.0.1"), fourSeconds)
		mem.Cut(zkfaults.Everyone, zkfaults.Both)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		<-ctx.Done() // the session is long over
		_ = c.Close()
	})
}
