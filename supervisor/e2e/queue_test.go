package e2e

import (
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

// In a queue a failover costs the same number of requests, however many stand by; in a race each of them takes part.
func TestFailoverCostInAQueueDoesNotGrowWithTheStandbys(t *testing.T) {
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
	// Now and then the other guardian helps with the closing, which is a handful of requests.
	if few, many := cost["queue with 3"], cost["queue with 20"]; few == 0 || many > few+8 {
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
		proxy.Judge(ledger.note)
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

// ledger keeps all requests that are no heartbeats.
type ledger struct {
	mu    sync.Mutex // guards what follows
	noted []kit.Request
	at    time.Time
}

func (l *ledger) note(r kit.Request) kit.Fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	// How many announcements of a role are written depends on how quickly the next one makes them obsolete.
	if !r.Heartbeat() && !strings.Contains(r.Path, "/members/") {
		l.noted, l.at = append(l.noted, r), time.Now()
	}
	return kit.Pass
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

// queued waits until so many stand in the queue. A member may say that it stands by before it does so there.
func (p *play) queued(t *testing.T, n int) {
	t.Helper()
	kit.Until(t, soon, fmt.Sprint(n, " stand in the queue"), func() bool {
		names, _, err := p.Conn().Children(p.Path("services", p.Options.Service, "queue"))
		return (err == nil || n == 0) && len(names) == n
	})
}

// A changed kind of election is taken up at once, and disturbs nobody.
func TestTheKindOfElectionChangesWhileRunning(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	files := map[*kit.Host]string{}
	write := func(h *kit.Host, order string) {
		fresh := p.file(t, h, "", command(p.Child()), "election: "+order)
		if files[h] == "" {
			files[h] = fresh
			return
		}
		must(t, os.Rename(fresh, files[h]))
	}
	waiting := func(n int) {
		t.Helper()
		p.queued(t, n)
	}
	write(a, "race")
	write(b, "race")
	one := p.fromFile(t, a, files[a])
	run := p.On(t, soon, "a", 0)
	p.fromFile(t, b, files[b])
	p.Stands(t, b)
	waiting(0)
	write(b, "queue")
	waiting(1)
	write(a, "queue") // it has the lock: its turn to stand comes later
	kit.Until(t, soon, "a has taken it up", func() bool { return one.Says("config taken up", `changed=["`+p.Options.Service+`"]`) })
	p.Untouched(t, run)
	one.Stop(t)
	next := p.On(t, soon, "b", run.First)
	p.fromFile(t, a, files[a])
	p.Stands(t, a)
	waiting(2)
	write(a, "race")
	waiting(1)
	p.Alone(t, 300*time.Millisecond, "b")
	if next.Node != "b" {
		t.Errorf("%+v", next)
	}
}

// A candidate that fails says why; the next one says that it stands.
func TestACandidateThatFailedIsAnnouncedAgain(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	a, _ := p.Active(t, p.Lab.Machine(t, "a"))
	b := p.Lab.Machine(t, "b")
	file := p.file(t, b, "", command(p.Child()), "election: queue")
	p.fromFile(t, b, file)
	p.Stands(t, b)
	p.queued(t, 1) // that was written, too
	let := func(perms int32) {
		t.Helper()
		_, err := p.Conn().SetACL(p.Path("services", p.Options.Service, "queue"), zk.WorldACL(perms), -1)
		must(t, err)
	}
	let(zk.PermAll &^ zk.PermDelete)
	must(t, os.Rename(p.file(t, b, "", command(p.Child()), "election: race"), file))
	why := func() string { m, _ := p.Member(p.Options.Service, "b"); return m.Why }
	kit.Until(t, soon, "it says that it fails", func() bool { return strings.Contains(why(), "cannot stand: leave the queue") })
	kit.Until(t, soon, "it has another candidate", func() bool { return why() == "" })
	p.Stands(t, b)
	a.Stop(t)
	p.On(t, soon, "b", 0)
}

// Whoever cannot take the lock, though nobody else has it, says that it stands by, and takes it as soon as it can.
func TestACandidateThatCannotTakeTheLockStandsBy(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	a, op := p.Lab.Machine(t, "a"), p.Lab.Host(t, "op")
	s := p.fromFile(t, a, p.file(t, a, "", command(p.Child())))
	p.On(t, soon, "a", 0)
	p.order(t, op, "pause", p.Options.Service)
	s.Kill9()
	at := tick.Now()
	kit.Until(t, soon, "its lock is gone", func() bool { _, held := p.Lock(p.Options.Service); return !held })
	p.fromFile(t, a, p.file(t, a, "", command(p.Child())))
	p.role(t, "a", "paused")
	dir := path.Join(p.Options.Root, "services", p.Options.Service)
	let := func(perms int32) {
		t.Helper()
		_, err := p.Conn().SetACL(dir, zk.WorldACL(perms), -1)
		must(t, err)
	}
	let(zk.PermRead | zk.PermAdmin)
	p.order(t, op, "resume", p.Options.Service)
	kit.Until(t, soon, "it says that it fails", func() bool {
		m, ok := p.Member(p.Options.Service, "a")
		return ok && m.Role == "standby" && strings.Contains(m.Why, "create the lock")
	})
	let(zk.PermAll)
	p.On(t, soon, "a", at)
}
