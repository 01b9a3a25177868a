package supervisor

import (
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"

	"understudy/election"
	"understudy/fencing/agent"
	"understudy/supervisor/service"
	"understudy/supervisor/wait"
)

// shared is what the services of this node share.
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

// service makes a service of its config.
func (s *supervisor) service(c Service) *service.Service { return service.New(s.shared(), c) }

// cluster is a name for the cluster that can be a part of a file's.
func (s *supervisor) cluster() string {
	h := fnv.New64a()
	fmt.Fprint(h, s.cfg.Root, slices.Sorted(slices.Values(s.cfg.Servers)))
	return strconv.FormatUint(h.Sum64(), 36)
}

// takeChanges takes up what becomes of the config, until ctx ends.
func (s *supervisor) takeChanges(ctx context.Context) {
	for {
		select {
		case c, open := <-s.cfg.Changes:
			if !open {
				return
			}
			s.apply(c)
		case asks := <-s.cfg.Pulse:
			s.pulse(ctx, asks)
		case <-ctx.Done():
			return
		}
	}
}

// apply makes services of what is new, tells those that changed, and stops those that are gone. The others do not notice.
func (s *supervisor) apply(c Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = c.Fault
	s.cfg.Observer.Faulty(c.Fault)
	wait.Poke(s.credentials.look)
	wait.Poke(s.exposure.look)
	defer wait.Poke(s.stir)
	if c.Services == nil {
		return
	}
	s.warned = c.Warnings
	s.cfg.Observer.Warned(election.Bounded(s.allWarnings()))
	var added, changed, removed []string
	for _, conf := range c.Services {
		i := slices.IndexFunc(s.services, func(v *service.Service) bool { return v.Name() == conf.Name && !v.Removed() })
		switch {
		case i < 0:
			s.services = append(s.services, s.service(conf))
			s.services[len(s.services)-1].Show()
			added = append(added, conf.Name)
		case !reflect.DeepEqual(s.services[i].Given(), conf):
			s.services[i].Give(conf)
			changed = append(changed, conf.Name)
		}
	}
	for _, v := range s.services {
		if !v.Removed() && !slices.ContainsFunc(c.Services, func(conf Service) bool { return conf.Name == v.Name() }) {
			v.Remove()
			removed = append(removed, v.Name())
		}
	}
	s.log.Info("config taken up", "added", added, "changed", changed, "removed", removed, "services", len(c.Services))
}

// faults is why not all of the config, and of the files that it names, is taken up. The caller holds mu.
func (s *supervisor) faults() string {
	withheld := s.credentials.why()
	if s.fault != "" && withheld != "" {
		return s.fault + "; " + withheld
	}
	return s.fault + withheld
}

// warnings are the dangerous settings that status tells.
func (s *supervisor) warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allWarnings()
}

// allWarnings are those of the config, and of what is found in ZooKeeper. The caller holds mu.
func (s *supervisor) allWarnings() []string {
	if s.exposed == "" {
		return s.warned
	}
	return append(slices.Clone(s.warned), s.exposed)
}

// waits tells whether one that bore the same name before, and was removed, has not ended yet: the lock of the one would be the
// other's own. The caller holds mu.
func (s *supervisor) waits(v *service.Service) bool {
	first := slices.IndexFunc(s.services, func(o *service.Service) bool { return o.Name() == v.Name() })
	return s.services[first] != v
}

// forget drops a service that was removed, once nothing of it is left: also no term that was about to be handed over.
func (s *supervisor) forget(v *service.Service, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || !v.Gone() { // its namesake, and what is still to be undone, wait for that in the next session, too
		return false
	}
	if b := v.Birth(); b != (election.Birth{}) {
		s.births[v.Name()] = b
	}
	s.services = slices.DeleteFunc(s.services, func(o *service.Service) bool { return o == v })
	if !slices.ContainsFunc(s.services, func(o *service.Service) bool { return o.Name() == v.Name() }) {
		s.cfg.Observer.Gone(v.Name())
	}
	s.leaving.Go(v.Close)
	return true
}

// expose notes what is open to others in ZooKeeper, and returns what was.
func (s *supervisor) expose(note string) (was string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, s.exposed = s.exposed, note
	s.cfg.Observer.Warned(election.Bounded(s.allWarnings())) // in the order of the changes
	if note != was {
		wait.Poke(s.stir)
	}
	return was
}

func (s *supervisor) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.services))
	for _, v := range s.services {
		names = append(names, v.Name())
	}
	return names
}
