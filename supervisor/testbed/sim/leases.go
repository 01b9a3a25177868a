package sim

import (
	"encoding/json"
	"time"

	"understudy/election"
	"understudy/supervisor/guard"
)

// leases is what a supervisor process tells of its leases. World.mu guards the pair.
type leases struct {
	of   *incarnation
	pair *guard.Guardians
}

// Begin implements host.Guard.
func (l *leases) Begin(number uint64, ticket []byte) error {
	if !l.of.pass() {
		return errCrashed
	}
	var t election.Ticket
	if ticket != nil { // what runs beside any session has none
		if err := json.Unmarshal(ticket, &t); err != nil {
			return err
		}
	}
	l.of.node.w.mu.Lock()
	defer l.of.node.w.mu.Unlock()
	return l.pair.State.Begin(number, ticket)
}

// Extend implements host.Guard.
func (l *leases) Extend(number uint64, deadline time.Duration) error {
	if !l.of.pass() {
		return errCrashed
	}
	l.of.node.w.mu.Lock()
	defer l.of.node.w.mu.Unlock()
	return l.pair.State.Extend(l.of.node.host.now(), number, deadline)
}

// Finish implements host.Guard.
func (l *leases) Finish(number uint64) error {
	if !l.of.pass() {
		return errCrashed
	}
	l.of.node.w.mu.Lock()
	defer l.of.node.w.mu.Unlock()
	return l.pair.State.Finish(number)
}

// Over implements host.Guard.
func (l *leases) Over(number uint64) <-chan struct{} {
	l.of.node.w.mu.Lock()
	defer l.of.node.w.mu.Unlock()
	return l.pair.State.Over(number)
}

// Cause implements host.Guard.
func (l *leases) Cause(number uint64) error {
	l.of.node.w.mu.Lock()
	defer l.of.node.w.mu.Unlock()
	return l.pair.State.Cause(number)
}
