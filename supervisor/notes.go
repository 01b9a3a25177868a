package supervisor

import (
	"slices"
	"sync"

	"understudy/election"
)

// notes are further facts for the status, besides the services.
type notes struct {
	observer Observer

	mu      sync.Mutex // guards the fields below
	fault   string     // why a changed config is not taken up
	warned  []string   // dangerous settings
	exposed string     // znodes that others can change
}

// faulty notes why a changed config is not in force; "": it is.
func (n *notes) faulty(why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault = why
	n.observer.Faulty(why)
}

// faults says why a part of the config is not in force; withheld says so of the credentials' file.
func (n *notes) faults(withheld string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fault != "" && withheld != "" {
		return n.fault + "; " + withheld
	}
	return n.fault + withheld
}

// warn notes the dangerous settings.
func (n *notes) warn(settings []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.warned = settings
	n.observer.Warned(election.Bounded(n.all()))
}

// expose notes the znodes that others can change, and returns the former ones.
func (n *notes) expose(note string) (was string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	was, n.exposed = n.exposed, note
	n.observer.Warned(election.Bounded(n.all())) // in the order of the changes
	return was
}

// warnings are the dangerous settings, for the status.
func (n *notes) warnings() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all()
}

// all are the warnings. The caller holds mu.
func (n *notes) all() []string {
	if n.exposed == "" {
		return n.warned
	}
	return append(slices.Clone(n.warned), n.exposed)
}
