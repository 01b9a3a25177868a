package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"understudy/election"
	"understudy/fencing/agent"
)

// pledges are what this node has promised others, while none of them saw ZooKeeper: not to start a service before a point of
// this machine's clock. They bind the supervisor that gave them by what it remembers, and one that comes after it by what it
// has to assume: that its predecessor gave, with its last breath, the longest promise that there is.
type pledges struct {
	mu      sync.Mutex               // guards what follows
	until   map[string]time.Duration // by service
	engaged map[string]int           // services that may be started here: nothing is promised of them
	newest  time.Duration            // when the newest write was sent that ZooKeeper has acknowledged
	seen    time.Duration            // until when ZooKeeper counts as seen, by that
	since   time.Duration            // when the agent began to listen: nobody of this name has promised anything from then on
}

func newPledges() *pledges {
	return &pledges{until: map[string]time.Duration{}, engaged: map[string]int{}}
}

// give promises, or says why not. P1: whoever asks goes on running the service for as long as this binds us.
func (p *pledges) give(q agent.Pledge, now time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.engaged[q.Service] > 0:
		return errors.New("it may be started here")
	case now < p.seen:
		return errors.New("ZooKeeper is there")
	}
	p.until[q.Service] = max(p.until[q.Service], now+q.For)
	return nil
}

// engage says that a service may be started here from now on: what was promised is known then.
func (p *pledges) engage(service string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engaged[service]++
}

func (p *pledges) disengage(service string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engaged[service]--
}

// acked notes that ZooKeeper has acknowledged a write that was sent then. P7: of a session that was granted less the newest tells, not
// the one that would be good for the longest.
func (p *pledges) acked(sent, session time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent >= p.newest {
		p.newest, p.seen = sent, sent+election.GoneAfter(session)
	}
}

// listening notes that whoever asks at this node's address is heard by this supervisor from now on, and by no other.
func (p *pledges) listening(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = now
}

// bound is until when this node has promised not to start a service.
func (p *pledges) bound(service string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until[service]
}

// heir is until when this node may be bound by what a supervisor before this one has promised. It reports false when nobody
// knows whether there is another one yet.
func (p *pledges) heir(session time.Duration) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.since + election.PromiseLength(session), p.since > 0
}

// promise is what the agent is asked for.
func (s *supervisor) promise(q agent.Pledge) error {
	err := s.pledges.give(q, s.cfg.Machine.Now())
	if err != nil {
		s.log.Info("asked for a promise, and gave none", "service", q.Service, "asked_by", q.By, "why", err)
		return err
	}
	s.log.Debug("promised not to start a service", "service", q.Service, "to", q.By, "its_token", q.Token, "for", q.For)
	return nil
}

// errUnlisted says that who was active may have gone on without a promise of this node.
var errUnlisted = errors.New("its breadcrumb says that it may go on without ZooKeeper (failsafe), and it never asked this node: only a proof of its child's death counts, no delay")

// errPromised says that a child must not be started yet.
var errPromised = errors.New("this node has promised not to start it yet")

// binds tells until when a former active may have gone on without ZooKeeper, by this node's word. It fails when that takes no
// word of this node.
func (v *service) binds(former *election.BreadCrumb) (until time.Duration, err error) {
	if !former.Failsafe.Binds() {
		return v.pledges.bound(v.name), nil
	}
	session := time.Duration(former.SessionMs) * time.Millisecond
	me := election.Peer{Node: v.node.Node, Machine: v.node.Machine, Agent: v.agentAt}
	heir, known := v.pledges.heir(session)
	if !known || !former.Failsafe.Lists(me) {
		return 0, fmt.Errorf("%w (it lists %d)", errUnlisted, len(former.Failsafe.Members))
	}
	return max(heir, v.pledges.bound(v.name)), nil
}

// sitOut waits until this node's promise has run out, or until that is not needed any more.
func (v *service) sitOut(ctx context.Context, confirmed <-chan struct{}) error {
	told := false
	for ctx.Err() == nil {
		left := v.until - v.machine.Now()
		if left <= 0 {
			return nil
		}
		if !told {
			told = true
			v.log.Info("waiting until what this node has promised is over", "service", v.name, "left", left.Round(time.Millisecond))
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-confirmed:
			v.until = 0
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return context.Cause(ctx)
}

// engage says that the service may be started here.
func (v *service) engage() {
	v.engaged = true
	v.pledges.engage(v.name)
}

func (v *service) disengage() {
	if v.engaged {
		v.engaged = false
		v.pledges.disengage(v.name)
	}
}
