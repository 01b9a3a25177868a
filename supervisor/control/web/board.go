package web

import (
	"maps"
	"slices"
	"sync"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
)

// Board holds what the supervisor last said of itself. A writer never waits.
type Board struct {
	now     func() time.Duration // the clock of leases
	metrics *metrics

	mu       sync.Mutex // guards the fields below
	lease    control.LeaseStatus
	services map[string]control.LocalStatus
	claimed  map[string]time.Time // when the lock was found free
	shown    map[string]bool      // to the other nodes, ever
	terms    []*term              // that are not judged yet
	fault    string
	warnings []string
	watchdog watchdog
	nodes    map[string]bool // that are known, and whether they are connected
	onChange chan struct{}   // closed, and replaced, at each change of a service, and when the session or the config fault is another
}

// NewBoard makes an empty one. now is the clock that leases are told on.
func NewBoard(now func() time.Duration) *Board {
	return &Board{
		now: now, metrics: newMetrics(), services: map[string]control.LocalStatus{}, claimed: map[string]time.Time{},
		shown: map[string]bool{}, onChange: make(chan struct{}),
	}
}

// Lease takes how far the lease reaches.
func (b *Board) Lease(l control.LeaseStatus) {
	b.mu.Lock()
	if opened := l.Session != ""; opened != (b.lease.Session != "") {
		b.changed()
	}
	b.lease = l
	b.mu.Unlock()
	if l.Took > 0 {
		b.metrics.heartbeat.Observe(l.Took.Seconds())
	}
}

// State takes how a service stands.
func (b *Board) State(s control.LocalStatus) {
	b.mu.Lock()
	was, known := b.services[s.Service]
	b.services[s.Service] = s
	b.take(was, s)
	claimed := b.claimed[s.Service]
	b.changed()
	b.mu.Unlock()
	if !known {
		b.metrics.expect(s.Service)
	}
	b.metrics.step(was, s, claimed)
}

// Gone takes that a service is not there any more.
func (b *Board) Gone(service string) {
	b.mu.Lock()
	delete(b.services, service)
	delete(b.claimed, service)
	delete(b.shown, service)
	b.terms = slices.DeleteFunc(b.terms, func(t *term) bool { return t.service == service })
	b.changed()
	b.mu.Unlock()
	b.metrics.forget(service)
}

// Fenced takes what came of fencing; by is empty when it was refused.
func (b *Board) Fenced(service, by string, took time.Duration) { b.metrics.fencing(service, by, took) }

// Restarted takes that a service's programs are started again.
func (b *Board) Restarted(service string) { b.metrics.restarts.WithLabelValues(service).Inc() }

// Claimed takes that another machine claims an address of a service.
func (b *Board) Claimed(service string) { b.metrics.claims.WithLabelValues(service).Inc() }

// Announced takes that the other nodes can see this node's part in a service.
func (b *Board) Announced(service string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.shown[service] {
		b.shown[service] = true
		b.changed()
	}
}

// Joined reports whether the other nodes can see this node, in all its services, and changed is closed when that may be otherwise.
func (b *Board) Joined() (joined bool, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	joined = b.lease.Session != ""
	for service := range b.services {
		joined = joined && b.shown[service]
	}
	return joined, b.onChange
}

// Faulty takes why the config is not taken up; "": it is.
func (b *Board) Faulty(why string) {
	b.mu.Lock()
	b.fault = why
	b.changed()
	b.mu.Unlock()
}

// Warned takes which settings are dangerous.
func (b *Board) Warned(warnings []string) {
	b.mu.Lock()
	b.warnings = warnings
	b.mu.Unlock()
}

// Nodes takes which nodes are known, and whether they are connected.
func (b *Board) Nodes(connected map[string]bool) {
	b.mu.Lock()
	b.nodes = connected
	b.mu.Unlock()
}

// watchdog is the device that resets this machine, and how it is used; a zero one is none.
type watchdog struct {
	device, mode string
	armed        func() bool
}

// Watchdog takes which device is used, and how. armed may be called at any time.
func (b *Board) Watchdog(device, mode string, armed func() bool) {
	b.mu.Lock()
	b.watchdog = watchdog{device, mode, armed}
	b.mu.Unlock()
}

// changed wakes those who wait for a change. The caller holds mu.
func (b *Board) changed() {
	close(b.onChange)
	b.onChange = make(chan struct{})
}

// changes is closed at the next change.
func (b *Board) changes() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.onChange
}

// left is how long the lease lasts; 0 without one.
func (b *Board) left() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leftLocked()
}

func (b *Board) leftLocked() time.Duration {
	if b.lease.Session == "" {
		return 0
	}
	return max(b.lease.End-b.now(), 0)
}

// Local is this node's own view, as JSON has it.
type Local struct {
	Node     string         `json:"node"`
	Version  string         `json:"version"`
	Session  string         `json:"session"` // empty: none
	LeaseMs  int64          `json:"lease_ms"`
	Failsafe bool           `json:"failsafe,omitempty"` // the lease goes by promises: ZooKeeper is gone
	Fault    string         `json:"config_fault"`
	Warnings []string       `json:"warnings"` // dangerous settings here
	Writable bool           `json:"writable"` // who shows the token may change something
	Services []LocalService `json:"services"`
}

// LocalService is how a service stands on this node, as JSON has it.
type LocalService struct {
	Service string          `json:"service"`
	Role    election.Role   `json:"role"`
	Reason  election.Reason `json:"reason"`
	Since   *time.Time      `json:"since"`
	Ready   bool            `json:"ready"`
	Serving bool            `json:"serving"` // what /active says
	Health  election.Health `json:"health"`
	Why     string          `json:"why"`
	Token   int64           `json:"token"`
}

// Local tells all of this node, and of its next change.
func (b *Board) Local() (l Local, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.leftLocked()
	l = Local{
		Session: b.lease.Session, LeaseMs: left.Milliseconds(), Failsafe: b.lease.Held && left > 0, Fault: b.fault,
		Warnings: append([]string{}, b.warnings...), Services: []LocalService{},
	}
	for _, name := range slices.Sorted(maps.Keys(b.services)) {
		s := b.services[name]
		v := LocalService{
			Service: name, Role: s.Role, Reason: s.Reason, Ready: s.Ready, Serving: idle(s, left) == "",
			Health: s.Health, Why: s.Why, Token: s.Token,
		}
		if !s.Since.IsZero() {
			v.Since = &s.Since
		}
		l.Services = append(l.Services, v)
	}
	return l, b.onChange
}

// serving tells whether the service does its work here, and else why not, in one word.
func (b *Board) serving(service string) (known bool, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, known := b.services[service]
	return known, idle(s, b.leftLocked())
}

// following tells whether clients may read from this node's copy of a replicated service, and else "no", which is all that anybody is told.
func (b *Board) following(service string, wish control.ReadWish) (known bool, why string) {
	b.mu.Lock()
	s, known := b.services[service]
	b.mu.Unlock()
	if s.Follows == nil || s.Follows(wish) != "" {
		why = "no"
	}
	return known, why
}

// copies tell how this node's copies of replicated services are.
func (b *Board) copies() map[string]func() control.CopyStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]func() control.CopyStatus{}
	for name, s := range b.services {
		if s.Copy != nil {
			all[name] = s.Copy
		}
	}
	return all
}

// idle says in one word why a service does not do its work here; "" when it does. Any client may ask: a reason, which can be a line of the
// program's, is for those who may read the status.
func idle(s control.LocalStatus, lease time.Duration) string {
	switch {
	case s.Role != election.RoleActive:
		return string(s.Role)
	case lease <= 0:
		return "expired"
	case s.Health == election.HealthFailing:
		return "failing"
	case !s.Ready:
		return "starting"
	}
	return ""
}
