package supervisor

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/handoff"
	"understudy/supervisor/service"
)

// roster holds the services of this node. A removed one stays until it has ended.
type roster struct {
	create   func(Service) *service.Service
	observer Observer
	closing  sync.WaitGroup // of services that were removed

	mu       sync.Mutex // guards the fields below
	services []*service.Service
	births   map[string]election.Birth // of the folders of removed services, so that a loss of data is still noticed
}

// add makes a service and adds it.
func (r *roster) add(c Service) *service.Service {
	v := r.create(c)
	r.services = append(r.services, v)
	return v
}

// addRemoved adds a service that is not in the config any more.
func (r *roster) addRemoved(name string) *service.Service {
	v := r.add(Service{Name: name, Service: config.Service{Eligible: true}})
	v.Remove()
	return v
}

// take adds the new services of a config, tells those that changed, and stops those that are gone. The others do not notice.
func (r *roster) take(services []Service) (added, changed, removed []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conf := range services {
		i := slices.IndexFunc(r.services, func(v *service.Service) bool { return v.Name() == conf.Name && !v.Removed() })
		switch {
		case i < 0:
			r.add(conf).Show()
			added = append(added, conf.Name)
		case !reflect.DeepEqual(r.services[i].Given(), conf):
			r.services[i].Give(conf)
			changed = append(changed, conf.Name)
		}
	}
	for _, v := range r.services {
		if !v.Removed() && !slices.ContainsFunc(services, func(conf Service) bool { return conf.Name == v.Name() }) {
			v.Remove()
			removed = append(removed, v.Name())
		}
	}
	return added, changed, removed
}

// reinstate gives each service its record in the envelope. A running one that is not in the config any more is stopped as if it
// had been removed now.
func (r *roster) reinstate(left *handoff.Envelope) {
	if left.Births != nil {
		r.births = left.Births
	}
	for _, c := range left.Services {
		i := slices.IndexFunc(r.services, func(v *service.Service) bool { return v.Name() == c.Name })
		switch {
		case i >= 0:
			r.services[i].Remember(c)
		case c.Term != nil || len(c.Debts) > 0:
			r.addRemoved(c.Name).Remember(c)
		default:
			r.births[c.Name] = c.Birth
		}
	}
}

// records are the services' records for the envelope.
func (r *roster) records() (births map[string]election.Birth, services []service.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.services {
		services = append(services, v.Record())
	}
	return r.births, services
}

// arrange starts the services that do not run yet, and stops those that were removed.
func (r *roster) arrange(ctx context.Context, stops map[*service.Service]context.CancelCauseFunc, errs map[*service.Service]error, begin func(*service.Service)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.services {
		stop, runs := stops[v]
		_, ended := errs[v]
		switch {
		case runs && v.Removed():
			stop(nil)
		case runs, ended, ctx.Err() != nil && !v.Carries(), r.waits(v):
		default:
			v.SetBirth(r.births[v.Name()]) // of a removed namesake, which is gone by now
			carried := v.Carries()
			if begin(v); carried && v.Removed() { // perhaps no other event ever wakes the loop
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

// tree finds a tree that this supervisor made.
func (r *roster) tree(name string, id json.RawMessage) *service.Tree {
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
