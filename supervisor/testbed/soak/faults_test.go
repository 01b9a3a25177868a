package soak

import (
	"fmt"
	"syscall"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// kind is what makes a service fail over.
type kind string

const (
	crash   kind = "child killed until it is given up"
	done    kind = "child exits with 0"
	unlock  kind = "lock deleted by hand"
	hangup  kind = "session closed from outside"
	freeze  kind = "supervisor frozen past its lease"
	term    kind = "supervisor gets SIGTERM, restarted"
	kill9   kind = "supervisor killed -9, restarted"
	surplus kind = "the other service of a supervisor that went"
)

// shares says how many of a hundred failovers are of a kind. The two that wait for a lease are slow.
var shares = []struct {
	kind
	percent int
}{{crash, 32}, {done, 30}, {unlock, 8}, {hangup, 1}, {freeze, 1}, {term, 14}, {kill9, 14}}

// draw takes the next fault out of the bag: one that ends the supervisor, or one that it survives.
func (s *soak) draw(ends bool) kind {
	for {
		for i, k := range s.bag {
			if (k == term || k == kill9) == ends {
				s.bag = append(s.bag[:i], s.bag[i+1:]...)
				return k
			}
		}
		for _, share := range shares {
			for range share.percent {
				s.bag = append(s.bag, share.kind)
			}
		}
		s.dice.Shuffle(len(s.bag), func(i, j int) { s.bag[i], s.bag[j] = s.bag[j], s.bag[i] })
	}
}

// failOver goes on until so many failovers were.
func (s *soak) failOver(until int) {
	s.Helper()
	for ; s.done < until; s.turn++ {
		s.one(s.services[s.turn%len(s.services)])
	}
}

// one has a service fail over. A term lasts a while, or less than it takes to write it into the history.
func (s *soak) one(l *ledger) {
	s.Helper()
	l.tidy(s.T)
	run := l.running(s.T, "it runs", func(r kit.Run) bool { return true })
	life := time.Duration(s.dice.IntN(120)) * time.Millisecond
	kit.Until(s, patience, "the term lasts for a while", func() bool { return time.Duration(tick.Now()-run.First) > life })
	s.fail(l, run, s.draw(s.on(run) == mortal))
}

// fail does one fault and waits until another term has begun.
func (s *soak) fail(l *ledger, run kit.Run, k kind) {
	s.Helper()
	other := s.services[0]
	if other == l {
		other = s.services[1]
	}
	besides, _ := other.newest()
	at := tick.Now()
	mend := s.inject(l, run, k)
	next := l.running(s.T, fmt.Sprintf("it runs again after %q on %s", k, s.on(run)), func(r kit.Run) bool {
		if k == crash && r.Token == run.Token {
			kit.Signal(syscall.SIGKILL, r.Pid)
		}
		return r.Token > run.Token
	})
	s.count(k, run, next, at)
	mend()
	if (k == term || k == kill9 || k == hangup || k == freeze) && besides.Node == run.Node {
		s.count(surplus, besides, other.running(s.T, "it runs again", func(r kit.Run) bool { return r.Token > besides.Token }), at)
	}
}

func (s *soak) count(k kind, run, next kit.Run, at int64) {
	s.done++
	s.kinds[k] = append(s.kinds[k], time.Duration(next.First-at))
	if next.Node != run.Node {
		s.moved++
	}
	if gap := kit.Gap(run, next); gap > session {
		s.Logf("%v: after %q on %s nobody ran for %v, then %s", time.Now().UTC().Format(time.StampMilli), k, s.on(run), gap, s.on(next))
	}
}

// inject does the harm, and returns what ends it once somebody else runs.
func (s *soak) inject(l *ledger, run kit.Run, k kind) (mend func()) {
	s.Helper()
	name := s.on(run)
	v := s.nodes[name]
	switch k {
	case crash:
		kit.Signal(syscall.SIGKILL, run.Pid)
	case done:
		kit.Signal(syscall.SIGTERM, run.Pid) // the child's own: it exits
	case unlock:
		_ = s.Conn().Delete(s.Path("services", l.name, "ActiveStandbyElectorLock"), -1)
	case hangup:
		kit.EndSession(s, s.stage.Servers[0], s.Path("services", l.name, "ActiveStandbyElectorLock"))
	case freeze:
		v.Signal(syscall.SIGSTOP)
		return func() { v.Signal(syscall.SIGCONT) }
	case term:
		v.Stop(s)
		s.start(name)
	case kill9:
		v.Kill9()
		s.start(name)
	}
	return func() {}
}
