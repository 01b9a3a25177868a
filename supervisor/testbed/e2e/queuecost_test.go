package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// In a queue a failover costs the same number of requests, however many stand by; in a race each of them takes part.
func TestFailoverCostInAQueueDoesNotGrowWithTheStandbys(t *testing.T) {
	stage(t) // no cost is compared where none is counted
	cost := map[string]int{}
	for _, election := range []string{"queue", "race"} {
		for _, standbys := range []int{3, 20} {
			name := fmt.Sprint(election, " with ", standbys)
			t.Run(name, func(t *testing.T) {
				requests, took := failoverCost(t, election, standbys)
				cost[name] = len(requests)
				t.Logf("%d requests, running again after %v: %v", len(requests), took, kinds(requests))
			})
		}
	}
	// Now and then the other guardian helps with the closing, which is a handful of requests. On a busy machine a standby may lose its session
	// meanwhile, which is nobody's cost: of three times the least counts.
	few, many := cost["queue with 3"], cost["queue with 20"]
	for range 2 {
		if many > few+8 {
			requests, _ := failoverCost(t, "queue", 20)
			many = min(many, len(requests))
		}
	}
	if few == 0 || many > few+8 {
		t.Errorf("%d requests with 3 standbys, %d with 20", few, many)
	}
	if few, many := cost["race with 3"], cost["race with 20"]; many <= few {
		t.Errorf("race: %d requests with 3 standbys, %d with 20: are they counted?", few, many)
	}
}

// failoverCost kills the active one and returns all requests that anybody sends until it is quiet again, heartbeats left
// out. The killed one's guardian is among those who send.
func failoverCost(t *testing.T, election string, standbys int) ([]kit.Request, time.Duration) {
	t.Helper()
	p := newPlay(t, stage(t))
	var ledger ledger
	proxies, servers := p.Lab.Proxies(t, p.Servers)
	for _, proxy := range proxies {
		proxy.Watch(ledger.note)
	}
	p.Options.ZK, p.Options.Flags = servers, []string{"--election", election}
	active, run := p.Active(t, p.Lab.Machine(t, "n0"))
	for i := range standbys {
		p.Start(t, p.Lab.Machine(t, fmt.Sprint("n", i+1)))
	}
	for _, s := range p.Started[1:] {
		p.Stands(t, s.Host)
	}
	ledger.settle(t)
	at := tick.Now()
	active.Kill9()
	next := p.Next(t, soon, run.First)
	return ledger.settle(t), time.Duration(next.First - at)
}

// ledger keeps all requests but those that are sent all the time.
type ledger struct {
	mu    sync.Mutex // guards what follows
	noted []kit.Request
	at    time.Time
}

func (l *ledger) note(r kit.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// How many announcements of a role are written depends on how quickly the next one makes them obsolete. A node looks at the heartbeats of
	// those ahead of it, and says that it is there, as often whatever happens.
	if steady := strings.Contains(r.Path, "/nodes") || strings.Contains(r.Path, "/known"); !r.Heartbeat() && !steady && !strings.Contains(r.Path, "/members/") {
		l.noted, l.at = append(l.noted, r), time.Now()
	}
}

// settle waits until nothing was noted for a while, and empties the ledger.
func (l *ledger) settle(t *testing.T) []kit.Request {
	t.Helper()
	kit.Until(t, soon, "no requests but heartbeats are sent", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return time.Since(l.at) > time.Second
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	noted := l.noted
	l.noted = nil
	return noted
}

func kinds(requests []kit.Request) map[string]int {
	all := map[string]int{}
	for _, r := range requests {
		all[r.String()]++
	}
	return all
}
