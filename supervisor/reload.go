package supervisor

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"understudy/fencing/agent"
	"understudy/supervisor/service"
	"understudy/supervisor/wait"
)

// shared makes the parts that all services of this node use.
func (s *supervisor) shared() *service.Node {
	n := &service.Node{
		Self: s.self, Cluster: s.cluster(), Machine: s.cfg.Machine, Guard: func() service.Guard { return s.guard }, Commands: s.commands,
		Promises: s.promises, Watchdog: s.cfg.Watchdog, Observer: s.cfg.Observer, Logger: s.log, Hurry: s.cfg.Hurry, Broken: s.cfg.Broken,
		Agent: service.Agent{At: s.cfg.Agent.address},
	}
	if a := s.cfg.Agent; a != nil {
		n.Agent.Ask = &agent.Method{Keys: a.Keys, Dial: a.Dial}
	}
	return n
}

// service makes a service from its config.
func (s *supervisor) service(c Service) *service.Service { return service.New(s.shared(), c) }

// cluster names the cluster, in characters that fit into a file name.
func (s *supervisor) cluster() string {
	h := fnv.New64a()
	fmt.Fprint(h, s.cfg.Root, slices.Sorted(slices.Values(s.cfg.Servers)))
	return strconv.FormatUint(h.Sum64(), 36)
}

// takeChanges puts changed configs in force until ctx ends. It answers pulses, too: that shows that this loop runs, and that no goroutine
// is stuck with the lock of the roster or the notes.
func (s *supervisor) takeChanges(ctx context.Context) {
	for {
		select {
		case c, open := <-s.cfg.Changes:
			if !open {
				return
			}
			s.apply(c)
		case asks := <-s.cfg.Pulse:
			select {
			case <-s.guarded: // before that, no program could run
			case <-ctx.Done():
				return
			}
			_, _ = s.roster.names(), s.notes.warnings()
			s.pulse.answer(ctx, asks)
		case <-ctx.Done():
			return
		}
	}
}

// apply puts a changed config in force, or returns why it cannot.
func (s *supervisor) apply(c Change) {
	defer wait.Poke(s.stir)
	s.notes.faulty(c.Fault)
	wait.Poke(s.credentials.look)
	wait.Poke(s.exposure.look)
	if c.Services == nil {
		return
	}
	s.notes.warn(c.Warnings)
	added, changed, removed := s.roster.take(c.Services)
	s.log.Info("config reloaded", "added", added, "changed", changed, "removed", removed, "services", len(c.Services))
}
