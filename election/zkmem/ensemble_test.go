package zkmem_test

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election/jute"
	"understudy/election/zkmem"
	"understudy/election/zktest"
)

const slowTick = 500 * time.Millisecond

// inEnsemble runs f in virtual time beside three servers, the first of which leads.
func inEnsemble(t *testing.T, limit int, f func(e *zkmem.Ensemble, dial func(server int) *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := zkmem.NewEnsemble(zkmem.Config{TickTime: slowTick}, zkmem.EnsembleConfig{
			SyncLimit: limit, Latency: func() time.Duration { return time.Millisecond },
		})
		f(e, func(server int) *client {
			ours, theirs := net.Pipe()
			go e.Server(server).ServeConn(theirs)
			raw, err := zktest.NewRaw(ours, jute.ConnectRequest{Timeout: 4000})
			if err != nil {
				t.Fatalf("server %d: %v", server+1, err)
			}
			t.Cleanup(func() { _ = raw.Close() })
			return &client{Raw: raw, t: t}
		})
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

func ephemeral(path string) request { return createAs(path, "", open, jute.FlagEphemeral) }

// The trap: a follower without its leader answers pings and reads all the while that the session is given away.
func TestIsolatedFollowerAnswersWhileItsSessionEnds(t *testing.T) {
	inEnsemble(t, 10, func(e *zkmem.Ensemble, dial func(int) *client) {
		holder, other := dial(1), dial(2)
		holder.want(ephemeral("/lock"), "ok /lock")
		e.Isolate(1)
		began := time.Now()
		for other.do(ephemeral("/lock")) != "ok /lock" {
			time.Sleep(50 * time.Millisecond)
			holder.want(ping, "ok")
			if took := time.Since(began); took > 5*time.Second {
				t.Fatalf("the lock is held for %v", took)
			}
		}
		if took := time.Since(began); took < 3500*time.Millisecond {
			t.Errorf("the lock was given away after %v", took)
		}
		if got := holder.do(exists("/lock", false)); !strings.Contains(got, " of me ") {
			t.Errorf("the follower does not show the lock as it was: %s", got)
		}
		time.Sleep(2 * time.Second)
		holder.want(ping, "broken connection")
	})
}

func TestIsolatedFollowerGivesUpAfterTheSyncLimit(t *testing.T) {
	inEnsemble(t, 5, func(e *zkmem.Ensemble, dial func(int) *client) {
		c := dial(1)
		heal := e.Isolate(1)
		time.Sleep(5*slowTick - slowTick/2)
		c.want(ping, "ok")
		time.Sleep(slowTick)
		c.want(ping, "broken connection")
		heal()
		time.Sleep(slowTick)
		dial(1).want(create("/back", ""), "ok /back")
	})
}

func TestFollowerReadsFromACopyThatMayBeBehind(t *testing.T) {
	inEnsemble(t, 5, func(e *zkmem.Ensemble, dial func(int) *client) {
		c, other := dial(1), dial(2)
		end := e.Slow(0, 1, time.Second)
		other.want(create("/new", ""), "ok /new")
		c.want(exists("/new", false), "no node")
		time.Sleep(time.Second + 10*time.Millisecond)
		if got := c.do(exists("/new", false)); got == "no node" {
			t.Error("it has not caught up")
		}
		end()
	})
}

func TestALeaderThatIsCutOffMakesNothingHold(t *testing.T) {
	inEnsemble(t, 5, func(e *zkmem.Ensemble, dial func(int) *client) {
		c, other := dial(0), dial(1)
		heal := e.Isolate(0)
		if _, err := c.Send(jute.OpCreate, create("/lost", "").body); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * slowTick)
		if got := e.Leader(); got == 0 || got == -1 {
			t.Fatalf("leader %d", got)
		}
		if got := c.dead(); got != "closed" {
			t.Error(got)
		}
		other.want(ping, "broken connection")
		dial(2).want(exists("/lost", false), "no node")
		heal()
		time.Sleep(2 * slowTick)
		dial(0).want(exists("/lost", false), "no node")
	})
}

func TestSessionsOutliveTheirLeader(t *testing.T) {
	inEnsemble(t, 5, func(e *zkmem.Ensemble, dial func(int) *client) {
		c := dial(1)
		c.want(ephemeral("/lock"), "ok /lock")
		e.Server(0).Down()
		time.Sleep(3 * time.Second)
		if got := dial(2).do(exists("/lock", false)); got == "no node" {
			t.Error("the session has ended")
		}
		time.Sleep(3 * time.Second)
		dial(2).want(exists("/lock", false), "no node")
		e.Server(0).Up()
		time.Sleep(slowTick)
		dial(0).want(exists("/lock", false), "no node")
	})
}

func TestAMovedSessionWritesNoMoreFromItsOldServer(t *testing.T) {
	inEnsemble(t, 5, func(e *zkmem.Ensemble, dial func(int) *client) {
		c := dial(1)
		ours, theirs := net.Pipe()
		go e.Server(2).ServeConn(theirs)
		moved, err := zktest.NewRaw(ours, jute.ConnectRequest{
			Timeout: 4000, SessionID: c.Session.SessionID, Password: c.Session.Password,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer moved.Close()
		c.want(create("/old", ""), "broken connection")
		(&client{Raw: moved, t: t}).want(create("/new", ""), "ok /new")
	})
}
