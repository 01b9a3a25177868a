package zkfaults_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
	"understudy/supervisor/testbed/zktest"
)

const slowTick = 500 * time.Millisecond

// inEnsemble runs f in virtual time beside three servers, the first of which leads.
func inEnsemble(t *testing.T, limit int, f func(e *zkfaults.Ensemble, dial func(server int) *client)) {
	t.Helper()
	inEnsembleOf(t, 3, limit, f)
}

func inEnsembleOf(t *testing.T, size, limit int, f func(e *zkfaults.Ensemble, dial func(server int) *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := zkfaults.NewEnsemble(zkfaults.Config{TickTime: slowTick}, zkfaults.EnsembleConfig{
			Size: size, SyncLimit: limit, Latency: func() time.Duration { return time.Millisecond },
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
		must.Report(t, e.Close())
	})
}

func ephemeral(path string) request { return createAs(path, "", open, jute.FlagEphemeral) }

// The trap: a follower without its leader answers pings and reads all the while that the session is given away.
func TestIsolatedFollowerAnswersWhileItsSessionEnds(t *testing.T) {
	inEnsemble(t, 10, func(e *zkfaults.Ensemble, dial func(int) *client) {
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
	inEnsemble(t, 5, func(e *zkfaults.Ensemble, dial func(int) *client) {
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
	inEnsemble(t, 5, func(e *zkfaults.Ensemble, dial func(int) *client) {
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

func TestSyncWaitsForWhatIsProposed(t *testing.T) {
	inEnsemble(t, 5, func(e *zkfaults.Ensemble, dial func(int) *client) {
		c, other, follows := dial(0), dial(0), dial(1)
		e.Slow(0, 1, time.Second)
		e.Slow(0, 2, time.Second)
		if _, err := other.Send(jute.OpCreate, jute.Create{Path: "/new", ACL: open}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		c.want(exists("/new", false), "no node")
		for _, c := range []*client{c, follows} {
			c.Patience = 10 * time.Second
			c.want(sync, "ok /")
			if got := c.do(exists("/new", false)); got == "no node" {
				t.Error("it is not there yet")
			}
		}
	})
}

func TestSyncWaitsForTheLeader(t *testing.T) {
	inEnsemble(t, 5, func(e *zkfaults.Ensemble, dial func(int) *client) {
		c, other := dial(1), dial(2)
		end := e.Slow(0, 1, time.Second)
		other.want(create("/new", ""), "ok /new")
		began := time.Now()
		c.want(sync, "ok /")
		if got := c.do(exists("/new", false)); got == "no node" || time.Since(began) < time.Second {
			t.Errorf("%s, after %v", got, time.Since(began))
		}
		end()
	})
}

func TestALeaderThatIsCutOffMakesNothingHold(t *testing.T) {
	inEnsemble(t, 5, func(e *zkfaults.Ensemble, dial func(int) *client) {
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
	inEnsemble(t, 5, func(e *zkfaults.Ensemble, dial func(int) *client) {
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
	inEnsemble(t, 5, func(e *zkfaults.Ensemble, dial func(int) *client) {
		c := dial(1)
		ours, theirs := net.Pipe()
		go e.Server(2).ServeConn(theirs)
		moved, err := zktest.NewRaw(ours, jute.ConnectRequest{
			Timeout: 4000, SessionID: c.Session.SessionID, Password: c.Session.Password,
		})
		must.OK(t, err)
		defer moved.Close()
		c.want(create("/old", ""), "broken connection")
		(&client{Raw: moved, t: t}).want(create("/new", ""), "ok /new")
	})
}

// What a lease has to allow for: an answered write may be younger than the newest sign of life that the leader knows.
func TestASessionEndsTooEarlyWhenItsServerIsCutOffUnheard(t *testing.T) {
	const early = 100 * time.Millisecond
	inEnsemble(t, 20, func(e *zkfaults.Ensemble, dial func(int) *client) {
		time.Sleep(slowTick - slowTick/4 - 60*time.Millisecond)
		e.Server(0).ElectLeader() // it leads from 60 ms before a tick on, and asks its followers then
		time.Sleep(slowTick)
		l := e.Leader()
		holder, other := dial((l+1)%3), dial((l+2)%3)
		holder.want(ephemeral("/lock"), "ok /lock")
		sprung := make(chan int, 1)
		var heal func()
		cancel := e.IsolateUnheard(holder.Session.SessionID, early, func(server int, h func()) { heal = h; sprung <- server })
		began, written := time.Now(), time.Time{}
		for written.IsZero() {
			at := time.Now()
			if got := holder.do(set("/lock", "", -1)); !strings.HasPrefix(got, "ok") {
				t.Fatal(got)
			}
			select {
			case server := <-sprung:
				if written = at; server != (l+1)%3 {
					t.Errorf("server %d is cut off", server+1)
				}
			case <-time.After(20 * time.Millisecond):
			}
			if time.Since(began) > time.Minute {
				t.Fatal("it waits for ever")
			}
		}
		cancel()
		for other.do(exists("/lock", false)) != "no node" {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(written); took > 4*time.Second-early+20*time.Millisecond {
			t.Errorf("the session ended %v after the write", took)
		}
		heal()
		time.Sleep(2 * slowTick)
		dial((l+1)%3).want(exists("/lock", false), "no node")
	})
}

// Who has led takes no orders from a follower that has not heard of it, and would mix them up with its leader's.
func TestAPreviousLeaderTakesNoOrders(t *testing.T) {
	inEnsembleOf(t, 5, 20, func(e *zkfaults.Ensemble, dial func(int) *client) {
		late := make([]*client, 20)
		for n := range late {
			late[n] = dial(4)
		}
		heal := e.Isolate(4)
		e.Server(0).Down()
		time.Sleep(slowTick)
		leader := dial(e.Leader())
		e.Server(0).Up()
		time.Sleep(slowTick)
		heal()
		for n := range late {
			path := fmt.Sprintf("/%d", n)
			go func() {
				time.Sleep(time.Millisecond / 2) // so that it comes between the change and the word that it holds
				late[n].do(create(path+"late", ""))
			}()
			leader.want(create(path, ""), "ok "+path)
		}
		time.Sleep(slowTick)
		previous := dial(0)
		for n := range late {
			if got := previous.do(exists(fmt.Sprintf("/%d", n), false)); !strings.HasPrefix(got, "ok") {
				t.Errorf("change %d at the previous leader: %s", n, got)
			}
			if got := previous.do(exists(fmt.Sprintf("/%dlate", n), false)); strings.HasPrefix(got, "ok") {
				t.Errorf("the previous leader has taken order %d: %s", n, got)
			}
		}
	})
}
