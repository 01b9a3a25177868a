package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/handoff"
	"understudy/supervisor/host"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// supervisor runs all services of a node, over one session with ZooKeeper at a time.
type supervisor struct {
	cfg     Config
	log     hclog.Logger
	self    election.Node
	trouble time.Duration // how long to wait after the next failure to open a session

	guarded  chan struct{} // closed when the guardians stand
	guard    Guard
	commands *unit.Commands
	promises *failsafe.Promises // this node's promises to others
	left     *handoff.Envelope  // the envelope of a former image of this process; nil: none

	roster      roster
	notes       notes
	credentials *credentials
	exposure    *exposure
	pulse       pulse
	stir        chan struct{} // capacity 1: the loop of a session has to look at the roster and the notes
}

func newSupervisor(cfg Config) *supervisor {
	s := &supervisor{
		cfg: cfg, log: cfg.Logger, guarded: make(chan struct{}), stir: make(chan struct{}, 1), promises: failsafe.NewPromises(),
		notes: notes{observer: cfg.Observer}, pulse: pulse{beat: make(chan struct{})},
	}
	s.roster = roster{create: s.service, observer: cfg.Observer, births: map[string]election.Birth{}}
	s.exposure = &exposure{look: make(chan struct{}, 1), names: s.roster.names, notes: &s.notes, changed: func() { wait.Poke(s.stir) }, log: s.log}
	s.credentials = newCredentials(cfg.Auth, s.log, func() { wait.Poke(s.exposure.look) }, func() { wait.Poke(s.stir) })
	return s
}

// Run supervises until ctx ends. Then it stops all children, gives all locks back, and returns. With Once it returns
// when the command has ended; status is then the command's own.
func Run(ctx context.Context, cfg Config) (status *child.ExitStatus, err error) {
	if cfg.Machine == nil {
		cfg.Machine = host.This(cfg.Thread, cfg.Root)
	}
	if cfg.Observer == nil {
		cfg.Observer = unobserved{}
	}
	self, err := cfg.Machine.Identity()
	if err != nil {
		return nil, fmt.Errorf("identify this machine: %w", err)
	}
	s := newSupervisor(cfg)
	s.commands = unit.NewCommands(func() unit.Guard { return s.guard }, cfg.Machine.Now)
	s.notes.warn(cfg.Warnings)
	s.self = election.Node{
		Node: cfg.Node, Host: cfg.Host, Pid: os.Getpid(), Version: cfg.Version, Machine: self.Machine, Boot: self.Boot,
		Since: time.Now().UTC(),
	}
	if cfg.Legacy != nil {
		if err := s.adopt(ctx); err != nil {
			return nil, fmt.Errorf("continue from the former image of this process: %w", err)
		}
	}
	for _, c := range cfg.Services {
		s.roster.add(c).Show()
	}
	if s.left != nil {
		s.roster.reinstate(s.left)
		s.log.Info("continuing after the upgrade: this process took over from its former version", "running", s.left.Running(), "session", election.SessionName(s.left.Session.Session))
	}
	for _, name := range unit.Indebted(cfg.Node, s.cluster()) {
		if !slices.ContainsFunc(cfg.Services, func(c Service) bool { return c.Name == name }) {
			s.roster.addRemoved(name)
		}
	}
	// The guardians start at the same time as the session. They end last.
	standing, fail := context.WithCancelCause(ctx)
	guarding, leave := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { fail(s.keepGuard(guarding)) })
	if cfg.Agent != nil {
		answers := s.answerer()
		wg.Go(func() { answers.keep(guarding) })
	}
	taking, enough := context.WithCancel(guarding)
	defer enough()
	var taken sync.WaitGroup
	taken.Go(func() { s.takeChanges(taking) })
	defer wg.Wait()
	defer leave()
	err = s.sessions(standing)
	enough()
	taken.Wait() // the services are ours from here on
	for _, v := range s.roster.services {
		v.Close()
	}
	s.roster.closing.Wait()
	if cause := context.Cause(standing); err == nil && ctx.Err() == nil && cause != nil {
		err = cause
	}
	for _, v := range s.roster.services {
		if err == nil {
			err = v.Undead() // the undead belong to an earlier session: this one was closed
		}
	}
	for _, v := range s.roster.services {
		if status := v.Finished(); status != nil {
			return status, err
		}
	}
	return nil, err
}

// keepGuard keeps two guardians running until ctx ends.
func (s *supervisor) keepGuard(ctx context.Context) error {
	if s.left != nil {
		return s.guard.Run(ctx)
	}
	guard, err := s.cfg.Machine.Guard(ctx, containment(s.cfg.Services), s.cfg.Node, s.log)
	if err != nil {
		return err
	}
	s.guard = guard
	s.showWatchdog()
	close(s.guarded)
	return guard.Run(ctx)
}

// sessions opens one session after the other until ctx ends.
func (s *supervisor) sessions(ctx context.Context) error {
	ctx, done := context.WithCancelCause(ctx)
	defer done(nil)
	ensemble := election.New(election.Config{
		Servers: s.cfg.Servers, Root: s.cfg.Root, Timeout: s.cfg.Timeout, Floor: s.cfg.Floor, Auth: s.cfg.Auth, TLS: s.cfg.TLS, Node: s.self,
		Logger: s.log.Named("election"), Dial: s.cfg.Dial, Now: s.cfg.Machine.Now, Strangers: s.cfg.Strangers,
	})
	defer ensemble.Wait()
	first := uint64(1)
	if s.left != nil {
		first = s.left.Epoch
	}
	for epoch := first; ; epoch++ {
		began := s.cfg.Machine.Now()
		err := s.open(ctx, ensemble, epoch)
		switch {
		case errors.Is(err, errUnresumed):
			return err
		case errors.Is(err, service.ErrUndead) && ctx.Err() != nil:
			return err
		case ctx.Err() != nil, s.roster.done():
			return nil
		}
		if errors.Is(err, election.ErrNoAuth) {
			s.credentials.refused(ensemble)
		}
		if s.cfg.Machine.Now()-began > settled {
			s.trouble = 0
		}
		lost := errors.Is(err, election.ErrLeaseEnding) || errors.Is(err, election.ErrExpired)
		if lost && s.trouble == 0 {
			s.trouble = minTrouble
			s.log.Warn("the ZooKeeper session is over, opening a new one", "reason", err)
			continue
		}
		s.trouble = min(max(2*s.trouble, minTrouble), maxTrouble)
		if err == nil {
			err = service.ErrGuard // guardians end a lease that they cannot watch
		}
		s.log.Error("cannot open a usable ZooKeeper session, retrying", "error", err, "in", s.trouble)
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
	s.log.Info("session with ZooKeeper", "id", election.SessionName(sess.ID()), "timeout", sess.Timeout(),
		"lease", election.LeaseLength(sess.Timeout()).Round(time.Millisecond))
	if resumed {
		// The guardians know the lease.
	} else if err := s.guard.Begin(epoch, election.EncodeTicket(sess.Ticket())); err != nil {
		return fmt.Errorf("tell the guardians of a new lease: %w", err)
	}
	defer func() {
		sess.OnExtended(func(time.Duration) {})
		sess.OnShortened(nil)
		s.cfg.Observer.Lease(Lease{})
	}()
	first, gate := sess.Lease.End(), s.newGate(sess, epoch)
	if resumed {
		gate.Expect(s.roster.carried())
	}
	sess.OnShortened(gate.Shorten)
	sess.OnExtended(func(end time.Duration) {
		s.showLease(sess, end, end != first)
		s.promises.Acked(sess.Acked(), sess.Timeout())
		if err := gate.Extend(end); err != nil {
			s.log.Warn("cannot extend the lease at the guardians", "error", err)
		}
	})
	if resumed && sess.Timeout() < s.left.Session.Timeout { // the guardians know the former timeout
		if err := gate.Shorten(context.WithoutCancel(ctx)); err != nil {
			sess.Stop(fmt.Errorf("%w: %w", service.ErrGuard, err))
		}
	}
	if err := s.serveGated(ctx, service.Session{Session: sess, Epoch: epoch, Gate: gate}); err != nil {
		return err
	}
	if err := s.guard.Finish(epoch); err != nil { // P2: the guardians know of a tree that has not ended
		return fmt.Errorf("%w: %w", service.ErrUndead, err)
	}
	return nil
}

// serveGated runs serveAll and, meanwhile, the session's gate.
func (s *supervisor) serveGated(ctx context.Context, t service.Session) error {
	keeping, enough := context.WithCancel(context.WithoutCancel(ctx)) // also while the services end
	var wg sync.WaitGroup
	wg.Go(func() { t.Gate.Keep(keeping) })
	defer wg.Wait()
	defer enough()
	return s.serveAll(ctx, t)
}

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
				s.log.Error("the upgrade is given up, nothing is handed over", "why", err)
				moving = nil
				look.Stop()
				maps.DeleteFunc(errs, func(_ *service.Service, err error) bool { return err == nil }) // they begin again
			}
		}
		if moving == nil {
			s.roster.arrange(ctx, stops, errs, begin)
			fault, warnings := s.notes.faults(s.credentials.why()), election.Bounded(s.notes.warnings())
			t.Session.Self.Say(func(n *election.Node) { n.Fault, n.Warnings = fault, warnings })
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
		case <-s.stir:
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

// containment is the mode that all services share: a particular kind if one asks for it, else strict if one asks for that.
func containment(services []Service) string {
	mode := config.ContainAuto
	for _, v := range services {
		if v.Contain != "" && v.Contain != config.ContainAuto && (mode == config.ContainAuto || mode == config.ContainStrict) {
			mode = v.Contain
		}
	}
	return string(mode)
}
