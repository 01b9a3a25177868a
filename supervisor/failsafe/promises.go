package failsafe

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"understudy/election"
	"understudy/fencing/agent"
)

// Promises are what this node has promised others, while none of them saw ZooKeeper: not to start a service before a time of this
// machine's clock. Only the supervisor that gave them remembers them: its successor has to assume that the longest possible promise was
// given just before the end.
type Promises struct {
	mu      sync.Mutex             // guards the fields below
	until   map[term]time.Duration // to whom
	engaged map[string]int         // services that may be started here: no promise is given about them
	newest  time.Duration          // when the newest write that ZooKeeper has acknowledged was sent
	seen    time.Duration          // until when ZooKeeper counts as seen because of that
	since   time.Duration          // when the agent began to listen: no other supervisor of this node promises anything from then on
}

// term is one that goes on by a promise.
type term struct {
	service string
	token   int64
}

// NewPromises are those of a node that has given none.
func NewPromises() *Promises {
	return &Promises{until: map[term]time.Duration{}, engaged: map[string]int{}}
}

// Give promises, or says why not. P1: the asking node goes on running the service for as long as this binds us.
func (p *Promises) Give(q agent.PromiseRequest, now time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.engaged[q.Service] > 0:
		return errors.New("it may be started here")
	case now < p.seen:
		return errors.New("ZooKeeper is there")
	}
	maps.DeleteFunc(p.until, func(_ term, until time.Duration) bool { return until < now })
	to := term{q.Service, q.Token}
	p.until[to] = max(p.until[to], now+q.For)
	return nil
}

// Engage says that a service may be started here from now on: no further promise is given about it.
func (p *Promises) Engage(service string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engaged[service]++
}

// Disengage takes back one Engage.
func (p *Promises) Disengage(service string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engaged[service]--
}

// Acked notes that ZooKeeper has acknowledged a write that was sent then, with this lease.
func (p *Promises) Acked(sent, lease time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent >= p.newest {
		p.newest, p.seen = sent, sent+election.GoneAfter(lease)
	}
}

// Listening notes that from now on this supervisor, and no other, is asked for promises at this node's address.
func (p *Promises) Listening(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = now
}

// Bound is until when this node has promised not to start a service.
func (p *Promises) Bound(service string) time.Duration { return p.BoundBesides(service, 0) }

// BoundBesides is Bound without the promises to one term, whose programs are proved dead. P1: where ZooKeeper comes back with an older copy
// of its data, the term that goes on by a promise is not the one that the breadcrumb names.
func (p *Promises) BoundBesides(service string, dead int64) (latest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for to, until := range p.until {
		if to.service == service && to.token != dead {
			latest = max(latest, until)
		}
	}
	return latest
}

// Inherited is until when a promise of this node's previous supervisor may bind it. It reports false while another supervisor of
// this node may still be promising.
func (p *Promises) Inherited(session time.Duration) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.since + election.PromiseLength(session), p.since > 0
}

// ErrUnlisted says that the previous active may have gone on without a promise of this node.
var ErrUnlisted = errors.New("by its record, the previous node may keep running without ZooKeeper (failsafe), " +
	"and it never asked this node: only a proof that its program is dead counts, no delay")

// Binding tells until when a previous active of a service may have gone on without ZooKeeper, by this node's promises. It fails
// with ErrUnlisted when the previous active needs none of them.
func (p *Promises) Binding(service string, me election.Peer, previous *election.BreadCrumb) (until time.Duration, err error) {
	if !previous.Failsafe.Binds() {
		return p.Bound(service), nil
	}
	inherited, known := p.Inherited(time.Duration(previous.LeaseMs) * time.Millisecond)
	if !known || !previous.Failsafe.Lists(me) {
		return 0, fmt.Errorf("%w (nodes in its record: %d)", ErrUnlisted, len(previous.Failsafe.Members))
	}
	return max(inherited, p.Bound(service)), nil
}
