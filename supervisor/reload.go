package supervisor

import (
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"

	"understudy/election"
	"understudy/supervisor/unit"
)

// service makes a service of its config.
func (s *supervisor) service(c Service) *service {
	return &service{
		Service: c, conf: c, name: c.Name, precheck: c.Precheck, node: s.self, log: s.cfg.Logger, observer: s.cfg.Observer,
		tries: restarts{cfg: c.Restart}, machine: s.cfg.Machine, agent: s.cfg.Agent, watchdog: s.cfg.Watchdog, promises: s.promises, says: make(chan election.Member, 1), news: newNews(),
		unit: unit.New(unit.Config{
			Service: c.Name, Node: s.cfg.Node, Cluster: s.cluster(), Logger: s.cfg.Logger, Hurry: s.cfg.Hurry, Commands: s.commands,
		}),
	}
}

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
	poke(s.credentials.look)
	poke(s.exposure.look)
	defer poke(s.stir)
	if c.Services == nil {
		return
	}
	s.warned = c.Warnings
	s.cfg.Observer.Warned(election.Bounded(s.allWarnings()))
	var added, changed, removed []string
	for _, conf := range c.Services {
		i := slices.IndexFunc(s.services, func(v *service) bool { return v.name == conf.Name && !v.removed.Load() })
		switch {
		case i < 0:
			s.services = append(s.services, s.service(conf))
			s.services[len(s.services)-1].show()
			added = append(added, conf.Name)
		case !reflect.DeepEqual(s.services[i].given(), conf):
			s.services[i].give(conf)
			changed = append(changed, conf.Name)
		}
	}
	for _, v := range s.services {
		if !v.removed.Load() && !slices.ContainsFunc(c.Services, func(conf Service) bool { return conf.Name == v.name }) {
			v.removed.Store(true)
			removed = append(removed, v.name)
		}
	}
	s.log.Info("config taken up", "added", added, "changed", changed, "removed", removed, "services", len(c.Services))
}

// faults is why not all of the config, and of the files that it names, is taken up. The caller holds mu.
func (s *supervisor) faults() string {
	if s.fault != "" && s.credentials.withheld != "" {
		return s.fault + "; " + s.credentials.withheld
	}
	return s.fault + s.credentials.withheld
}

// warnings are the dangerous settings that status tells.
func (s *supervisor) warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allWarnings()
}

// allWarnings are those of the config, and of what is found in ZooKeeper. The caller holds mu.
func (s *supervisor) allWarnings() []string {
	if s.exposure.note == "" {
		return s.warned
	}
	return append(slices.Clone(s.warned), s.exposure.note)
}

// waits tells whether one that bore the same name before, and was removed, has not ended yet: the lock of the one would be the
// other's own. The caller holds mu.
func (s *supervisor) waits(v *service) bool {
	first := slices.IndexFunc(s.services, func(o *service) bool { return o.name == v.name })
	return s.services[first] != v
}

// forget drops a service that was removed, once nothing of it is left: also no term that was about to be handed over.
func (s *supervisor) forget(v *service, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !v.removed.Load() || err != nil || v.carried != nil {
		return false
	}
	if v.undead != nil || v.alive != "" { // its namesake, and what is still to be undone, wait for that in the next session, too
		return false
	}
	if v.birth != (election.Birth{}) {
		s.births[v.name] = v.birth
	}
	s.services = slices.DeleteFunc(s.services, func(o *service) bool { return o == v })
	if !slices.ContainsFunc(s.services, func(o *service) bool { return o.name == v.name }) {
		s.cfg.Observer.Gone(v.name)
	}
	s.leaving.Go(v.leave)
	return true
}

// given is the config that a service was last given, in force or about to be.
func (v *service) given() Service {
	v.news.mu.Lock()
	defer v.news.mu.Unlock()
	return v.conf
}

// give hands a service its changed config.
func (v *service) give(c Service) {
	v.news.tell(func() { v.conf, v.news.next = c, &c })
}

// leave ends what a service may have left running beside its terms.
func (v *service) leave() {
	v.confirming.Wait()
	v.unit.Close()
}
