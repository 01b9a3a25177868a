package main

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/zktest"
)

// replicated compares what promotes one of three copies of Redis or PostgreSQL.
func replicated() *part[*trio, failover] {
	shared := &kit.Program{}
	stage := sync.OnceValue(func() *kit.Stage { return kit.NewStage(shared, 3, zktest.Config{}) })
	return &part[*trio, failover]{
		name: "replicated",
		about: fmt.Sprintf("Three copies of Redis or PostgreSQL, three ZooKeeper servers with tickTime 500 ms. A client tries one copy after the other, gives each a second,\n"+
			"writes numbers, notes those that another copy has, too (WAIT 1, a synchronous commit), and stays with who acknowledges them.\n"+
			"It still reaches a host that is cut off from the others. "+
			"What is cut or frozen is healed or thawed %v after the takeover, or %v after the fault if there is none.", beforeHeal, noTakeover),
		columns: []string{"no write acknowledged", "two primaries at once", "acknowledged, of them lost", "another copy promoted"},
		cells:   cellsOfFailover,
		times:   2,
		close:   shared.Close,
		peers:   replicators(stage),
		trials: []trial[*trio, failover]{
			{"switchover", switchedOver},
			{"program killed (SIGKILL)", programKilled},
			{"peer's process killed", processKilled},
			{"host cut off, healed", cutOff},
			{"peer's process frozen", processFrozen},
			{"host frozen, thawed", hostFrozen},
		},
	}
}

const (
	noTakeover = 40 * time.Second // longer than any session here
	settling   = 3 * time.Minute  // until all copies follow again
)

// failover is what one fault came to.
type failover struct {
	gap         time.Duration // no write was acknowledged, until all copies followed again
	two         time.Duration // there were two primaries
	acked, lost int
	promoted    bool // another copy was
}

// befalls has a fault befall the primary, and waits until all copies follow the one that is the primary then. If a copy on another host
// is to acknowledge writes, heal comes after that.
func befalls(tb testing.TB, w *trio, ready func(), strike func(p *kit.Host), heal func(p *kit.Host)) (o failover) {
	p := w.primary(tb)
	w.ledger.Served(tb, p.Addr+w.port)
	ready()
	before := w.ledger.Count()
	w.primaries.Longest()
	from := w.ledger.Sent()
	strike(p)
	moved := func() bool {
		by, ok := w.ledger.AckedBy(from + 1)
		return ok && by != p.Addr+w.port
	}
	if heal != nil {
		if kit.Reached(noTakeover, moved) {
			time.Sleep(beforeHeal)
		}
		heal(p)
	} else {
		time.Sleep(beforeHeal)
	}
	now := w.primary(tb)
	gap := w.ledger.Served(tb, now.Addr+w.port)
	lost, _, _ := w.ledger.Missing(tb, now.Addr+w.port)
	w.sound = true
	o = failover{gap: gap, two: w.primaries.Longest(), acked: w.ledger.Count() - before, lost: len(lost) - w.lost, promoted: now != p}
	w.lost = len(lost)
	return o
}

func switchedOver(tb testing.TB, w *trio, ready func()) failover {
	return befalls(tb, w, ready, func(p *kit.Host) { w.switchover(tb, p) }, nil)
}

func programKilled(tb testing.TB, w *trio, ready func()) failover {
	return befalls(tb, w, ready, func(p *kit.Host) { kit.Signal(syscall.SIGKILL, w.servers(p)...) }, nil)
}

func processKilled(tb testing.TB, w *trio, ready func()) failover {
	return befalls(tb, w, ready, func(p *kit.Host) { kit.Signal(syscall.SIGKILL, w.process(tb, p)) }, nil)
}

func cutOff(tb testing.TB, w *trio, ready func()) failover {
	return befalls(tb, w, ready, func(p *kit.Host) { p.Lose(tb, 100) }, func(p *kit.Host) { p.Heal(tb) })
}

func processFrozen(tb testing.TB, w *trio, ready func()) failover {
	var frozen int
	return befalls(tb, w, ready, func(p *kit.Host) {
		frozen = w.process(tb, p)
		kit.Signal(syscall.SIGSTOP, frozen)
	}, func(*kit.Host) { kit.Signal(syscall.SIGCONT, frozen) })
}

func hostFrozen(tb testing.TB, w *trio, ready func()) failover {
	return befalls(tb, w, ready, func(p *kit.Host) { p.Freeze(tb, true) }, func(p *kit.Host) { p.Freeze(tb, false) })
}

// cellsOfFailover is what the table has of a peer and a fault.
func cellsOfFailover(seen []failover) []string {
	var gaps, twos []time.Duration
	acked, lost, promoted := 0, 0, 0
	for _, o := range seen {
		gaps, twos = append(gaps, o.gap), append(twos, o.two)
		acked, lost = acked+o.acked, lost+o.lost
		if o.promoted {
			promoted++
		}
	}
	two := "never"
	if longest := kit.Quantile(twos, 1); longest > 0 {
		two = "at most " + longest.Round(time.Millisecond).String()
	}
	return []string{span(gaps), two, fmt.Sprintf("%d, %d", acked, lost), fmt.Sprintf("%d of %d", promoted, len(seen))}
}
