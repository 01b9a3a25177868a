package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"understudy/supervisor/testbed/kit"
)

// What servers and strangers do to sessions.

// grants are ticks of servers, of which twenty are the longest session. From the longest grant to the shortest it is more than 7/12: what
// is granted less, and not read, is not promised to be survived.
var grants = []time.Duration{130 * time.Millisecond, 160 * time.Millisecond, tickTime}

// regrant has the servers restarted one by one with another tick, so that sessions come back with less than before, and later with more.
func regrant(w *world, s *struck) func() {
	other := (w.ensemble.granted + 1 + s.dice.IntN(len(grants)-1)) % len(grants)
	w.ensemble.granted = other
	tick := grants[other]
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

// restart restarts a server, unless it is down, and waits until it serves, but not for ever: others may be out of order too.
func (en *ensemble) restart(z *server, enough <-chan struct{}) bool {
	en.mu.Lock()
	select {
	case <-enough:
		en.mu.Unlock()
		return false
	default:
	}
	if en.stage.ZK.PID(z.index) != 0 {
		en.must(en.stage.ZK.Kill(z.index)) // one that is frozen would not stop
		en.must(en.stage.ZK.StartServer(z.index))
	}
	en.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		_ = en.stage.ZK.WaitReady(ctx)
	}()
	select {
	case <-ready:
		return true
	case <-enough:
	case <-en.tasks.over:
	}
	return false
}

// endSession has a stranger end the session under which something runs: its node knows at once, or is frozen, or cut off, and has a lease.
func endSession(w *world, s *struck) func() {
	service := services[s.dice.IntN(len(services))].name
	running := w.book.running()[service]
	if len(running) == 0 {
		return nil
	}
	n := w.node(running[0].Node)
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
		undo = w.sever(n, func(w *world, n *node) { n.host.CutFrom(w, w.stage.Addrs()...) })
		s.Target += ", cut off"
	}
	server := w.stage.Servers[s.dice.IntN(len(w.ensemble.servers))]
	w.tasks.Go(func() {
		if kit.TryEndSession(server, w.look.Path("services", service, "ActiveStandbyElectorLock")) == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.record.past.SessionsEnded++
		}
	})
	return undo
}
