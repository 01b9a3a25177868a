package supervisor

import (
	"context"
	"errors"
	"time"

	"understudy/election"
	"understudy/fencing/agent"
)

// promise is what the agent is asked for.
func (s *supervisor) promise(q agent.Pledge) error {
	err := s.promises.Give(q, s.cfg.Machine.Now())
	if err != nil {
		s.log.Info("asked for a promise, and gave none", "service", q.Service, "asked_by", q.By, "why", err)
		return err
	}
	s.log.Debug("promised not to start a service", "service", q.Service, "to", q.By, "its_token", q.Token, "for", q.For)
	return nil
}

// errPromised says that a child must not be started yet.
var errPromised = errors.New("this node has promised not to start it yet")

// binds tells until when a former active may have gone on without ZooKeeper, by this node's promises.
func (v *service) binds(former *election.BreadCrumb) (until time.Duration, err error) {
	return v.promises.Binding(v.name, election.Peer{Node: v.node.Node, Machine: v.node.Machine, Agent: v.agentAt}, former)
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
	v.promises.Engage(v.name)
}

func (v *service) disengage() {
	if v.engaged {
		v.engaged = false
		v.promises.Disengage(v.name)
	}
}
