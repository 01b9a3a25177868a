package main

import (
	"fmt"
	"syscall"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
)

// What servers and strangers do to sessions.

// regrant has the servers restarted one by one with another tick, so that sessions come back with less than before, and later with more.
func regrant(w *world, s *struck) func() {
	tick := w.ensemble.grant(s.dice)
	for i := range w.ensemble.servers { // a follower may lag as long as before
		w.must(w.stage.ZK.Reconfigure(i, fmt.Sprintf("tickTime=%d\ninitLimit=%d\nsyncLimit=%d",
			tick.Milliseconds(), 20*tickTime/tick, 4*tickTime/tick)))
	}
	s.hurts(w.ensemble.servers...)
	s.Target = fmt.Sprintf("all, one by one: %v", min(session, 20*tick))
	enough := make(chan struct{})
	first := s.dice.IntN(len(w.ensemble.servers))
	w.tasks.Go(func() {
		for i := range w.ensemble.servers {
			if !w.ensemble.restart(w.ensemble.servers[(first+i)%len(w.ensemble.servers)], enough) {
				return
			}
		}
	})
	return func() { close(enough) } // what is left has its new tick when it starts again
}

// endSession has a stranger end the session under which something runs: its node knows at once, or is frozen, or cut off, and has a lease.
func endSession(w *world, s *struck) func() {
	service := services[s.dice.IntN(len(services))].name
	running := w.book.running()[service]
	if len(running) == 0 {
		return nil
	}
	n := w.fleet.node(running[0].Node)
	s.on(n)
	undo := func() {}
	switch how := s.dice.IntN(3); {
	case n.off:
		return nil
	case how == 1:
		if !n.watched(1) {
			return nil
		}
		sup := n.sup
		sup.Signal(syscall.SIGSTOP)
		undo = func() { sup.Signal(syscall.SIGCONT) }
		s.Target += ", frozen"
	case how == 2:
		undo = n.sever(w, func(w *world, n *node) { n.host.CutFrom(w, w.stage.Addrs()...) })
		s.Target += ", cut off"
	}
	server := w.stage.Servers[s.dice.IntN(len(w.ensemble.servers))]
	w.tasks.Go(func() {
		if kit.TryEndSession(server, w.look.Path("services", service, "ActiveStandbyElectorLock")) == nil {
			w.record.count(func(c *history.Counts) { c.SessionsEnded++ })
		}
	})
	return undo
}
