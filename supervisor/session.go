package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"understudy/election"
	"understudy/fencing/agent"
	"understudy/supervisor/control"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/handoff"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/wait"
)

// sessions opens one session after the other until ctx ends.
func (s *supervisor) sessions(ctx context.Context) error {
	ctx, done := context.WithCancelCause(ctx)
	defer done(nil)
	var seen service.Keeper
	defer seen.Finish()
	longest := time.Duration(0)
	if m := s.cfg.Memory; m != nil {
		seen.Save, longest = func(k service.Known) { m.Save(service.AllServices, k) }, m.Load(service.AllServices).Longest
	}
	sessions := election.New(election.Config{
		Servers: s.cfg.Servers, Root: s.cfg.Root, Lease: s.cfg.Lease, Auth: s.cfg.Auth, TLS: s.cfg.TLS, Node: s.self,
		Logger: s.log.Named("election"), Dial: s.cfg.Dial, Resolver: s.cfg.Resolver, Now: s.cfg.Machine.Now, MostInTurn: s.cfg.MostInTurn,
		Seen: longest, Saw: func(longest time.Duration) { seen.Put(service.Known{Longest: longest}) },
	})
	defer sessions.Wait()
	first := uint64(1)
	if s.left != nil {
		first = s.left.Epoch
	} else {
		defer s.provePrevious(ctx, sessions.Died)()
	}
	defer s.cfg.SessionRecord.end()
	for epoch := first; ; epoch++ {
		began := s.cfg.Machine.Now()
		err := s.open(ctx, sessions, epoch)
		switch {
		case errors.Is(err, errUnresumed):
			return err
		case errors.Is(err, service.ErrUnproved) && ctx.Err() != nil:
			return err
		case ctx.Err() != nil, s.roster.done():
			return nil
		case errors.Is(err, errOutlasted):
			s.log.Warn("the ZooKeeper session has expired, opening a new one; the other nodes agreed not to start what runs (failsafe)")
			continue
		}
		if errors.Is(err, election.ErrNoAuth) {
			s.credentials.refused(sessions)
		}
		if s.cfg.Machine.Now()-began > settled {
			s.trouble = 0
		}
		lost := errors.Is(err, election.ErrLeaseEnding) || errors.Is(err, election.ErrExpired) || errors.Is(err, election.ErrBeatGone)
		if lost && s.trouble == 0 {
			s.trouble = minTrouble
			s.log.Warn("the ZooKeeper session is over, opening a new one", "reason", err)
			continue
		}
		s.trouble = min(max(2*s.trouble, minTrouble), maxTrouble)
		if err == nil {
			err = service.ErrGuard // guardians end a lease that they cannot watch
		}
		s.log.Error("cannot open a usable ZooKeeper session, retrying", "error", election.Explained(err), "in", s.trouble)
		wait.For(ctx, s.trouble)
	}
}

// A session that ends at once is not opened again at once.
const (
	settled    = 2 * time.Second
	minTrouble = 500 * time.Millisecond
	maxTrouble = 15 * time.Second
)

// serve runs all services in one session. It returns nil only when none of their processes is alive.
func (s *supervisor) serve(ctx context.Context, sess *election.Session, epoch uint64) error {
	select {
	case <-s.guarded:
	default:
		select {
		case <-s.guarded:
		case <-ctx.Done():
			return nil
		}
	}
	resumed := s.left != nil && s.left.Epoch == epoch
	contain := s.guard.Kind()
	sess.Self.Say(func(n *election.Node) { n.Contain = contain })
	s.log.Info("session with ZooKeeper", "id", election.SessionName(sess.ID()), "lease", sess.LeaseLength().Round(time.Millisecond))
	if resumed {
		// The guardians know the lease.
	} else if err := s.guard.Begin(epoch, election.EncodeTicket(sess.Ticket())); err != nil {
		return fmt.Errorf("tell the guardians of a new lease: %w", err)
	}
	defer func() {
		sess.OnExtended(func(time.Duration) {})
		s.cfg.Observer.Lease(control.LeaseStatus{})
	}()
	s.cfg.SessionRecord.noteSession(sess.ID(), s.guard.Maker)
	first, gate := sess.Lease.End(), s.newGate(sess, epoch)
	if resumed {
		gate.Expect(s.roster.carried())
	}
	for term, until := range s.roster.outlasting() {
		gate.Cover(term, until)
	}
	sess.OnExtended(func(end time.Duration) {
		s.showLease(sess, end, end != first)
		s.promises.Acked(sess.Acked(), sess.LeaseLength())
		if err := gate.Extend(end); err != nil {
			s.log.Warn("cannot extend the lease at the guardians", "error", err)
		}
	})
	err := s.serveGated(ctx, service.Session{Session: sess, Epoch: epoch, Gate: gate, Moved: func() { wait.Poke(s.wake) }})
	outlasted := len(s.roster.outlasting()) > 0
	if outlasted {
		s.previousEpochs = append(s.previousEpochs, epoch)
	}
	switch {
	case err != nil:
		return err
	case outlasted:
		return errOutlasted
	}
	s.finishPrevious()
	if err := s.guard.Finish(epoch); err != nil { // P2: the guardians know of a tree that has not ended
		return fmt.Errorf("%w: %w", service.ErrUnproved, err)
	}
	return nil
}

// errOutlasted says that programs run on though their session has expired.
var errOutlasted = errors.New("programs have outlasted their session")

// finishPrevious has the guardians forget the leases of previous sessions, once no tree is left under them.
func (s *supervisor) finishPrevious() {
	s.previousEpochs = slices.DeleteFunc(s.previousEpochs, func(epoch uint64) bool { return s.guard.Finish(epoch) == nil })
}

// serveGated runs serveAll and, meanwhile, the session's gate and the watch over the services.
func (s *supervisor) serveGated(ctx context.Context, t service.Session) error {
	keeping, enough := context.WithCancel(context.WithoutCancel(ctx)) // also while the services end
	var wg sync.WaitGroup
	wg.Go(func() { t.Gate.Keep(keeping) })
	wg.Go(func() { t.KeepKnown(keeping, s.roster.standing, s.cfg.Observer.Nodes) })
	if t.Epoch == 1 && s.cfg.Neighbours != nil {
		s.roster.closing.Go(func() { s.cfg.Neighbours.dropForgotten(keeping, s.roster.names, t.HasService) })
	}
	if s.cfg.Stuck != nil {
		wg.Go(func() {
			deciding := func() []decider { return s.deciding(t.Over()) }
			watchSteps(keeping, func() time.Duration { return 2 * t.LeaseLength() }, s.cfg.Machine.Now, deciding, s.cfg.Stuck)
		})
	}
	err := s.serveAll(ctx, t)
	enough()
	wg.Wait()
	if err == nil && ctx.Err() != nil {
		brief, done := context.WithTimeout(context.WithoutCancel(ctx), stopWord)
		defer done()
		_ = t.SayStopped(brief, s.roster.standing()) // else it looks lost
	}
	return err
}

// stopWord bounds what is written when all that matters is done.
const stopWord = 300 * time.Millisecond

// serveAll serves all services, also those added meanwhile, until all have left the session.
func (s *supervisor) serveAll(ctx context.Context, t service.Session) error {
	t.Leave = ctx.Done()
	stops := map[*service.Service]context.CancelCauseFunc{} // of the running services
	errs := map[*service.Service]error{}                    // of the services that have ended
	type end struct {
		v      *service.Service
		err    error
		handed bool // it has left for an upgrade
	}
	ended := make(chan end)
	begin := func(v *service.Service) {
		serving, stop := context.WithCancelCause(ctx)
		stops[v] = stop
		go func() {
			err := v.Serve(serving, t)
			ended <- end{v, err, errors.Is(context.Cause(serving), service.ErrHandover)}
		}()
	}
	over, leaving := s.guard.Over(t.Epoch), ctx.Done()
	defer s.pulse.turning()()
	var moving *handoff.Move // an upgrade under way
	look := time.NewTicker(handoff.Look)
	defer look.Stop()
	look.Stop()
	for {
		if moving != nil {
			if err := s.moveOn(ctx, t, moving, stops); err != nil {
				s.log.Error("the upgrade is cancelled, and this version keeps running", "why", err)
				moving = nil
				look.Stop()
				maps.DeleteFunc(errs, func(_ *service.Service, err error) bool { return err == nil }) // they begin again
			}
		}
		s.finishPrevious()
		if moving == nil {
			s.roster.arrange(ctx, stops, errs, begin)
			now := s.notes.read()
			warnings := election.Bounded(now.warnings())
			fault, restart := now.faults(s.credentials.why())
			t.Session.Self.Say(func(n *election.Node) {
				n.Sum, n.Fault, n.Restart, n.Warnings, n.Untold, n.Unserved = now.sum, fault, restart, warnings, now.untold, s.unserved
			})
		}
		if len(stops) == 0 && (ctx.Err() != nil || s.roster.done()) {
			break
		}
		select {
		case e := <-ended:
			stops[e.v](nil)
			delete(stops, e.v)
			errs[e.v] = e.err
			// P2: a service that left for an upgrade begins again if the upgrade was given up; its child runs.
			if s.roster.forget(e.v, e.err) || e.handed && e.err == nil && moving == nil {
				delete(errs, e.v)
			}
		case <-s.cfg.Upgrade.Asked:
			if moving == nil {
				moving = handoff.Begin()
				look.Reset(handoff.Look)
			}
		case <-look.C:
		case s.unserved = <-s.cfg.Unserved:
		case <-s.wake:
		case <-s.pulse.beat:
		case <-over:
			over = nil
			t.Session.Stop(fmt.Errorf("%w: %w", service.ErrGuard, s.guard.Cause(t.Epoch)))
		case <-leaving:
			leaving = nil
		}
	}
	return errors.Join(slices.Collect(maps.Values(errs))...)
}

// open opens a session, the one that was handed over first.
func (s *supervisor) open(ctx context.Context, sessions *election.Sessions, epoch uint64) error {
	serve := func(ctx context.Context, sess *election.Session) error {
		renewing, enough := context.WithCancel(ctx)
		var wg sync.WaitGroup
		if s.credentials.read != nil {
			wg.Go(func() { s.credentials.renewOnChange(renewing, sess, sessions) })
			wg.Go(func() { s.exposure.watchZnodes(renewing, sess) })
		}
		defer wg.Wait()
		defer enough()
		return s.serve(ctx, sess, epoch)
	}
	if s.left == nil || s.left.Epoch != epoch {
		return sessions.Open(ctx, serve)
	}
	served := false
	err := sessions.Resume(ctx, s.left.Session, func(ctx context.Context, sess *election.Session) error {
		served = true
		return serve(ctx, sess)
	})
	if !served { // the previous one must be closed before the next one is opened
		return fmt.Errorf("%w: %w", errUnresumed, err)
	}
	return err
}

// errUnresumed says that a session that was handed over could not even be tried: this process has to end.
var errUnresumed = errors.New("the session of the previous version cannot be used")

// newGate makes the gate of a session, before any program runs in it.
func (s *supervisor) newGate(sess *election.Session, epoch uint64) *failsafe.Gate {
	cfg := failsafe.Config{
		Session: sess, Guardians: guardians{s.guard, epoch}, Node: s.self.Node, Promises: s.promises, Now: s.cfg.Machine.Now, Log: s.log,
		Show: func(end time.Duration, held bool) { s.showHeld(sess, end, held) },
	}
	if s.cfg.Agent != nil {
		cfg.Agent = &agent.Method{Keys: s.cfg.Agent.Keys, Dial: s.cfg.Agent.Dial}
	}
	return failsafe.NewGate(cfg)
}

// guardians show a gate one session's part of the guard.
type guardians struct {
	guard host.Guard
	epoch uint64
}

func (g guardians) Extend(end time.Duration) error { return g.guard.Extend(g.epoch, end) }

// showLease tells the observer of an extended lease.
func (s *supervisor) showLease(sess *election.Session, end time.Duration, beat bool) {
	s.held.Store(false)
	l := control.LeaseStatus{Session: election.SessionName(sess.ID()), End: end}
	if beat {
		l.Took = max(s.cfg.Machine.Now()-sess.Acked(), time.Nanosecond)
	}
	s.cfg.Observer.Lease(l)
}

// showHeld tells the observer of a lease by promises, or that it is over.
func (s *supervisor) showHeld(sess *election.Session, end time.Duration, held bool) {
	s.held.Store(held)
	s.cfg.Observer.Lease(control.LeaseStatus{Session: election.SessionName(sess.ID()), End: end, Held: held})
}
