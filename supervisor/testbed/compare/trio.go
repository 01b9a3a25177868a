package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/watch"
)

// trio is a replicated program on three hosts under one peer. One fault after the other befalls it.
type trio struct {
	program
	hosts []*kit.Host
	dirs  map[string]string // of each host's data
	sound bool              // it got over the last fault
	lost  int               // writes so far

	process    func(tb testing.TB, h *kit.Host) int // the peer's own, on a host
	switchover func(tb testing.TB, from *kit.Host)
	ready      func(p *kit.Host) bool // the peer knows all that it has to for a failover

	ledger    *watch.Ledger
	primaries *watch.Primaries
}

// program is how a program's copies are asked.
type program struct {
	port, name, user string
	state            func(addr, from string) (primary, follows bool, err error)
	asker            func(addr string) func() bool
	dial             func(addr string) (watch.Store, error)
}

var (
	redis = program{
		port: ":6379", name: "redis-server", user: "redis", state: watch.RedisState, asker: watch.AskRedis, dial: watch.DialReplicatedRedis,
	}
	postgresql = program{
		port: ":5432", name: "postgres", user: "postgres", state: watch.PostgresState, asker: watch.AskPostgres, dial: watch.DialPostgres,
	}
)

// newTrio makes the hosts, and their empty data folders.
func newTrio(tb testing.TB, lab *kit.Lab, p program) *trio {
	w := &trio{program: p, dirs: map[string]string{}}
	for _, name := range []string{"a", "b", "c"} {
		h := lab.Host(tb, name)
		h.PowerOn(tb)
		tb.Cleanup(func() { h.PowerOff(tb) }) // whatever runs there
		w.hosts = append(w.hosts, h)
		w.dirs[name], _, _ = kit.Share(tb, p.user)
	}
	return w
}

// begin waits for the first primary. Then a client writes, and all copies are asked all the time.
func (w *trio) begin(tb testing.TB) *trio {
	w.primary(tb)
	var addrs []string
	for _, h := range w.hosts {
		addrs = append(addrs, h.Addr+w.port)
	}
	w.primaries = watch.NewPrimaries(tb, w.asker, addrs...)
	w.ledger = watch.NewLedger(tb, w.dial, addrs...)
	w.sound = true
	return w
}

// primary waits until one copy is the primary, and the others have followed it for a while.
func (w *trio) primary(tb testing.TB) *kit.Host {
	tb.Helper()
	var now *kit.Host
	var since time.Time
	var saw string
	settled := func() bool {
		saw = ""
		var primaries []*kit.Host
		for _, h := range w.hosts {
			if is, _, _ := w.state(h.Addr+w.port, ""); is { // one that does not answer is none
				primaries = append(primaries, h)
			}
		}
		if len(primaries) != 1 || primaries[0] != now {
			now, since = nil, time.Now()
			if len(primaries) == 1 {
				now = primaries[0]
			}
			return false
		}
		for _, h := range w.hosts {
			if h == now {
				continue
			}
			if _, follows, err := w.state(h.Addr+w.port, now.Addr); !follows {
				saw += fmt.Sprintf("%s does not follow %s (%v); ", h.Name, now.Name, err)
			}
		}
		if saw != "" || !w.ready(now) {
			since = time.Now()
			return false
		}
		return time.Since(since) > 2*time.Second
	}
	if !kit.Reached(settling, settled) {
		tb.Fatalf("after %v there is no primary with two copies that follow: %v; %s", settling, now, saw)
	}
	return now
}

// servers are the program's processes on a host.
func (w *trio) servers(h *kit.Host) []int { return kit.Processes(w.name, w.dirs[h.Name]) }

// unit runs a command on a host as its systemd unit does, which starts it again after a while however it ended.
func unit(tb testing.TB, h *kit.Host, again string, command ...string) *kit.Supervisor {
	tb.Helper()
	return h.UnderstudyAt(tb, script(tb, "while :; do", quoted(command), "sleep "+again, "done"))
}

// main waits for the process that a unit runs now.
func mainOf(tb testing.TB, s *kit.Supervisor) (pid int) {
	tb.Helper()
	kit.Until(tb, kit.Soon, "the unit's process runs", func() bool {
		for _, pid = range kit.Children(s.Pid) {
			if !strings.HasPrefix(kit.CommandLine(pid), "sleep ") {
				return true
			}
		}
		return false
	})
	return pid
}

// again has the same trio meet one fault after the other, and makes another one when it has not got over one.
func again(outer testing.TB, make func(tb testing.TB) *trio) func(tb testing.TB) *trio {
	var w *trio
	var own *kit.Program
	startless := false
	outer.Cleanup(func() {
		if own != nil {
			own.Close()
		}
	})
	return func(tb testing.TB) *trio {
		if startless {
			tb.Fatal("the copies did not start")
		}
		if w == nil || !w.sound {
			if own != nil {
				own.Close()
			}
			own = &kit.Program{}
			var ok bool
			if w, ok = attempt(own, make); !ok {
				startless = true
				tb.Fatal("the copies do not start")
			}
		}
		w.sound = false
		return w
	}
}

// conf writes a file for a host that the user may change, too: next to its data.
func (w *trio) conf(tb testing.TB, h *kit.Host, name, text string) string {
	tb.Helper()
	dir := filepath.Dir(w.dirs[h.Name])
	path := filepath.Join(dir, name)
	write(tb, path, text)
	give(tb, w.user, dir, path)
	return path
}
