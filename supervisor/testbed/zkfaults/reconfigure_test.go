package zkfaults_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/zkfaults"
	"understudy/supervisor/testbed/zktest"
)

// observed runs f in virtual time beside three servers that vote and one that does not.
func observed(t *testing.T, f func(e *zkfaults.Ensemble, dial func(server int) *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := zkfaults.NewEnsemble(zkfaults.Config{TickTime: slowTick}, zkfaults.EnsembleConfig{Observers: 1, Latency: func() time.Duration { return time.Millisecond }})
		f(e, func(server int) *client {
			ours, theirs := net.Pipe()
			go e.Server(server).ServeConn(theirs)
			raw, err := zktest.NewRaw(ours, jute.ConnectRequest{Timeout: 4000})
			if err != nil {
				return nil
			}
			t.Cleanup(func() { _ = raw.Close() })
			return &client{Raw: raw, t: t}
		})
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnObserverServesAndDoesNotCount(t *testing.T) {
	observed(t, func(e *zkfaults.Ensemble, dial func(int) *client) {
		c := dial(3)
		c.want(ephemeral("/lock"), "ok /lock")
		for range 20 { // its pings keep the session
			time.Sleep(slowTick)
			c.want(ping, "ok")
		}
		dial(1).want(create("/there", ""), "ok /there")
		c.want(sync, "ok /")
		c.want(exists("/none", false), "no node")
		e.Isolate(1)
		e.Isolate(2) // a leader and an observer are no majority
		time.Sleep(10 * slowTick)
		if got := e.Leader(); got != -1 {
			t.Errorf("server %d leads an observer", got+1)
		}
		c.want(ping, "broken connection")
	})
}

func TestAnObserverNeverLeads(t *testing.T) {
	observed(t, func(e *zkfaults.Ensemble, dial func(int) *client) {
		for n := range 3 {
			e.Server(n).Down()
			time.Sleep(10 * slowTick)
			if got := e.Leader(); got == 3 {
				t.Errorf("%d are down, and the observer leads", n+1)
			}
			if n == 0 {
				dial(3).want(create("/one", ""), "ok /one")
			}
		}
	})
}

func TestServersAreRemovedAndAdded(t *testing.T) {
	observed(t, func(e *zkfaults.Ensemble, dial func(int) *client) {
		dial(3).want(create("/kept", ""), "ok /kept")
		change := func(server int, part zkfaults.Part) {
			t.Helper()
			time.Sleep(4 * slowTick)
			if !e.Reconfigure(server, part) {
				t.Errorf("server %d does not become %d", server+1, part)
			}
			time.Sleep(4 * slowTick)
		}
		change(0, zkfaults.Removed) // it has led
		if dial(0) != nil {
			t.Error("a server that was removed serves")
		}
		e.Server(0).Down()
		e.Server(0).Up()
		if time.Sleep(4 * slowTick); dial(0) != nil {
			t.Error("a server that was removed serves after a restart")
		}
		if e.Reconfigure(e.Leader(), zkfaults.Observer) {
			t.Error("one voter is left")
		}
		change(3, zkfaults.Voter)
		change(1, zkfaults.Removed)
		dial(2).want(create("/new", ""), "ok /new")
		change(0, zkfaults.Observer)
		if got := dial(0).do(exists("/new", false)); got == "no node" {
			t.Error("a server that was away has not caught up")
		}
		e.Server(2).Down() // of two voters
		if time.Sleep(10 * slowTick); e.Leader() != -1 || e.Reconfigure(0, zkfaults.Voter) {
			t.Error("one of two voters is a majority")
		}
	})
}
