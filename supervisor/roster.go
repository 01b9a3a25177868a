package supervisor

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"time"

	"understudy/election"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/handoff"
	"understudy/supervisor/service"
	"understudy/supervisor/wait"
)

// roster holds the services of this node. A removed one stays until it has ended.
type roster struct {
	create   func(service.Conf) *service.Service
	observer Observer
	closing  sync.WaitGroup // of services that were removed

	mu       sync.Mutex // guards the fields below
	services []*service.Service
	births   map[string]election.Birth // of the folders of removed services, so that a loss of data is still noticed
}

// add makes a service and adds it.
func (r *roster) add(c service.Conf) *service.Service {
	v := r.create(c)
	r.services = append(r.services, v)
	return v
}

// addRemoved adds a service that is not in the config any more.
func (r *roster) addRemoved(c service.CarriedService) *service.Service {
	v := r.add(c.Ran())
	v.Remove()
	return v
}

// apply adds the new services of a config, tells those that changed, and stops those that are gone. The others do not notice.
func (r *roster) apply(services []service.Conf) (added, changed, removed []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conf := range services {
		i := slices.IndexFunc(r.services, func(v *service.Service) bool { return v.Name() == conf.Name && !v.Removed() })
		switch {
		case i < 0:
			r.add(conf).Show()
			added = append(added, conf.Name)
		case unlike(r.services[i].Given(), conf): // its program is started in another way
			r.services[i].Remove()
			r.add(conf).Show()
			changed = append(changed, conf.Name)
		case !reflect.DeepEqual(r.services[i].Given(), conf):
			r.services[i].Give(conf)
			changed = append(changed, conf.Name)
		}
	}
	for _, v := range r.services {
		if !v.Removed() && !slices.ContainsFunc(services, func(conf service.Conf) bool { return conf.Name == v.Name() }) {
			v.Remove()
			removed = append(removed, v.Name())
		}
	}
	return added, changed, removed
}

// unlike reports whether the programs of a service are started in another way.
func unlike(a, b service.Conf) bool {
	return (a.Replicated == nil) != (b.Replicated == nil) || (a.Warm == nil) != (b.Warm == nil)
}

// reinstate gives each service its record in the envelope. A running one that is not in the config any more is stopped as a removed one.
func (r *roster) reinstate(left *handoff.Envelope) {
	if left.Births != nil {
		r.births = left.Births
	}
	for _, c := range left.Services {
		i := slices.IndexFunc(r.services, func(v *service.Service) bool { return v.Name() == c.Name })
		switch {
		case i >= 0 && len(c.Runs()) > 0 && unlike(r.services[i].Given(), c.Ran()): // its program was started in another way
			previous := r.addRemoved(c)
			r.services = slices.Insert(slices.DeleteFunc(r.services, func(v *service.Service) bool { return v == previous }), i, previous)
			previous.Remember(c)
		case i >= 0:
			r.services[i].Remember(c)
		case len(c.Runs()) > 0 || len(c.PendingUndos) > 0 || c.Place.Session != 0: // P6: or a place in the queue, behind which others wait
			r.addRemoved(c).Remember(c)
		default:
			r.births[c.Name] = c.Birth
		}
	}
}

// records are the services' records for the envelope.
func (r *roster) records() (births map[string]election.Birth, services []service.CarriedService) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.services {
		services = append(services, v.Carry())
	}
	return r.births, services
}

// arrange starts the services that do not run yet, and stops those that were removed.
func (r *roster) arrange(
	ctx context.Context, stops map[*service.Service]context.CancelCauseFunc, errs map[*service.Service]error, begin func(*service.Service),
) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.services {
		stop, runs := stops[v]
		_, ended := errs[v]
		if !runs { // also while there is no session
			v.ResumeCopy()
		}
		switch {
		case runs && v.Removed():
			stop(nil)
		case runs, ended, ctx.Err() != nil && !v.Carries(), r.waits(v):
		default:
			v.SetBirth(r.births[v.Name()]) // of a removed namesake, which is gone by now
			carried := v.Carries()
			begin(v)
			if carried && v.Removed() { // perhaps no other event ever wakes the loop
				stops[v](nil)
			}
		}
	}
}

// waits reports whether a removed service of the same name has not ended yet: both would treat its lock as their own. The
// caller holds mu.
func (r *roster) waits(v *service.Service) bool {
	first := slices.IndexFunc(r.services, func(o *service.Service) bool { return o.Name() == v.Name() })
	return r.services[first] != v
}

// forget drops a removed service after it has ended, unless a term of it was about to be handed over.
func (r *roster) forget(v *service.Service, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || !v.Gone() { // its namesake, and due undos, wait for that in the next session, too
		return false
	}
	if b := v.Birth(); b != (election.Birth{}) {
		r.births[v.Name()] = b
	}
	r.services = slices.DeleteFunc(r.services, func(o *service.Service) bool { return o == v })
	if !slices.ContainsFunc(r.services, func(o *service.Service) bool { return o.Name() == v.Name() }) {
		r.observer.Gone(v.Name())
	}
	r.closing.Go(v.Close)
	return true
}

// done reports whether there is no service left.
func (r *roster) done() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	unfinished := func(v *service.Service) bool { return v.Finished() == nil }
	return len(r.services) > 0 && !slices.ContainsFunc(r.services, unfinished)
}

// names are the services' names.
func (r *roster) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, 0, len(r.services))
	for _, v := range r.services {
		names = append(names, v.Name())
	}
	return names
}

// standing are the services for which this node stands, or would if nothing was wrong with it.
func (r *roster) standing() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.services {
		if c := v.Given(); c.Eligible && !c.Once && !v.Removed() {
			names = append(names, v.Name())
		}
	}
	return names
}

// tree finds a tree that this supervisor made.
func (r *roster) tree(name string, id json.RawMessage) *service.OwnTree {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.services, func(v *service.Service) bool { return v.Name() == name })
	if i < 0 {
		return nil
	}
	return r.services[i].Tree(id)
}

// carried are the running terms that were handed over and will go on here.
func (r *roster) carried() (terms []failsafe.Term) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.services {
		if v.Carries() {
			terms = append(terms, v.Term())
		}
	}
	return terms
}

// outlasting are the terms that have outlasted their session, with the end of the promises that cover each.
func (r *roster) outlasting() map[failsafe.Term]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	terms := map[failsafe.Term]time.Duration{}
	for _, v := range r.services {
		if until := v.Outlasts(); until > 0 {
			terms[v.Term()] = until
		}
	}
	return terms
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
			_, _ = s.roster.names(), s.notes.read()
			s.pulse.answer(ctx, asks)
		case <-ctx.Done():
			return
		}
	}
}

// apply puts a changed config in force, or returns why it cannot.
func (s *supervisor) apply(c Change) {
	defer wait.Poke(s.wake)
	s.notes.change(func(f *facts) { f.fault, f.restart = c.Fault, c.Restart })
	wait.Poke(s.credentials.look)
	wait.Poke(s.exposure.look)
	if c.Services == nil {
		return
	}
	if err := s.cfg.Neighbours.occupy(c.Services); err != nil {
		s.log.Error("the changed config is not taken up", "why", err)
		s.notes.change(func(f *facts) { f.fault, f.restart = err.Error(), false })
		return
	}
	s.notes.change(func(f *facts) { f.warned, f.sum = c.Warnings, c.Sum })
	added, changed, removed := s.roster.apply(c.Services)
	s.log.Info("config reloaded", "added", added, "changed", changed, "removed", removed, "services", len(c.Services))
}

// notes are further facts for the status, besides the services.
type notes struct {
	observer Observer

	mu  sync.Mutex // guards now
	now facts
}

type facts struct {
	sum     string   // of the config's files that are in force
	fault   string   // why a changed config is not taken up
	restart bool     // a restart takes it up
	warned  []string // dangerous settings
	exposed string   // znodes that others can change
	untold  string   // why people are not told what happens
}

// change changes the facts, and returns what they were. The observer hears of it in the order of the changes.
func (n *notes) change(do func(*facts)) (was facts) {
	n.mu.Lock()
	defer n.mu.Unlock()
	was = n.now
	do(&n.now)
	if n.now.fault != was.fault {
		n.observer.Faulty(n.now.fault)
	}
	n.observer.Warned(election.Bounded(n.now.warnings()))
	return was
}

func (n *notes) read() facts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

// faults says why a part of the config is not in force, and whether a restart is all it needs; withheld says so of the credentials' file.
func (f facts) faults(withheld string) (why string, restart bool) {
	if f.fault != "" && withheld != "" {
		return f.fault + "; " + withheld, false
	}
	return f.fault + withheld, f.restart && withheld == ""
}

// warnings are the dangerous settings, for the status.
func (f facts) warnings() []string {
	if f.exposed == "" {
		return f.warned
	}
	return append(slices.Clone(f.warned), f.exposed)
}

// pulse shows that the loop of a session runs, if there is a session.
type pulse struct {
	beat chan struct{} // taken by the loop

	mu   sync.Mutex    // guards over
	over chan struct{} // closed at the loop's end; nil while there is none
}

// answer answers that the supervisor is alive, after the loop has taken a beat.
func (p *pulse) answer(ctx context.Context, asks chan<- struct{}) {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over != nil {
		select {
		case p.beat <- struct{}{}:
		case <-over:
		case <-ctx.Done():
			return
		}
	}
	select {
	case asks <- struct{}{}:
	default: // it does not wait any more
	}
}

// turning notes that the loop of a session runs. The returned function ends that.
func (p *pulse) turning() func() {
	over := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = over
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over = nil
		close(over)
	}
}
