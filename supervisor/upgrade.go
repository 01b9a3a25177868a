package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"understudy/election"
	"understudy/supervisor/handoff"
	"understudy/supervisor/service"
)

// moveOn does the next step of an upgrade. An error says that the upgrade is given up.
func (s *supervisor) moveOn(ctx context.Context, t service.Session, m *handoff.Move, stops map[*service.Service]context.CancelCauseFunc) error {
	sender := handoff.Sender{
		Session: t, Guard: s.guard, Write: s.envelope, Become: s.cfg.Upgrade.Become, Now: s.cfg.Machine.Now, Log: s.log,
	}
	all := make([]handoff.Serving, 0, len(stops))
	for v, leave := range stops {
		all = append(all, handoff.Serving{Service: v, Leave: leave})
	}
	return m.On(ctx, sender, all, s.unsettled)
}

// unsettled returns the reason for which an upgrade waits, besides the services.
func (s *supervisor) unsettled() error {
	if why := s.credentials.why(); why != "" { // another image would show credentials that cannot open what is in ZooKeeper
		return fmt.Errorf("%w: %s", handoff.ErrNotNow, why)
	}
	if s.credentials.unshown() {
		return handoff.ErrUnshown
	}
	return nil
}

// envelope is the state for the next image.
func (s *supervisor) envelope() handoff.Envelope {
	births, services := s.roster.records()
	e := handoff.Envelope{
		Node: s.cfg.Node, Root: s.cfg.Root, Servers: s.cfg.Servers, Since: s.self.Since, Commands: s.commands.Begun(), Births: births,
		Services: services,
	}
	if s.cfg.Agent != nil {
		e.Agent = s.cfg.Agent.Listen
	}
	return e
}

// adopt takes over the state of a former image of this process. On an error this process has to end: to its guardians that is
// a supervisor's death, and they do the rest.
func (s *supervisor) adopt(ctx context.Context) error {
	left, err := handoff.Open(s.cfg.Legacy, s.cfg.Node, s.cfg.Root, s.cfg.Servers)
	if err != nil {
		return err
	}
	s.cfg.Legacy = nil
	guard, err := s.cfg.Machine.Adopt(ctx, left.Guard, s.cfg.Node, s.log)
	if err != nil {
		return err
	}
	if err := left.Find(guard.Adopted, s.log); err != nil {
		return err
	}
	s.guard = guard
	close(s.guarded)
	s.self.Since = left.Since
	s.commands.GoOn(left.Commands)
	s.left = left
	return nil
}

// open opens a session, the one that was handed over first.
func (s *supervisor) open(ctx context.Context, ensemble *election.Ensemble, epoch uint64) error {
	serve := func(ctx context.Context, sess *election.Session) error {
		renewing, enough := context.WithCancel(ctx)
		var wg sync.WaitGroup
		if s.credentials.read != nil {
			wg.Go(func() { s.credentials.keep(renewing, sess, ensemble) })
			wg.Go(func() { s.exposure.keep(renewing, sess) })
		}
		defer wg.Wait()
		defer enough()
		return s.serve(ctx, sess, epoch)
	}
	if s.left == nil || s.left.Epoch != epoch {
		return ensemble.Open(ctx, serve)
	}
	served := false
	err := ensemble.Resume(ctx, s.left.Session, func(ctx context.Context, sess *election.Session) error {
		served = true
		return serve(ctx, sess)
	})
	if !served { // the former one must be closed before the next one is opened
		return fmt.Errorf("%w: %w", errUnresumed, err)
	}
	return err
}

// errUnresumed says that a session that was handed over could not even be tried: this process has to end.
var errUnresumed = errors.New("the session that was handed over cannot be used")
