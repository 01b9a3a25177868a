package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child"
)

// errGuard ends all terms: the guardians have ended the lease, or are dead, and then a child could outlive us.
var errGuard = errors.New("guardians")

// supervisor runs all services of a node, over one session with ZooKeeper at a time.
type supervisor struct {
	cfg      Config
	log      hclog.Logger
	services []*service
	trouble  time.Duration // how long to wait after the next failure to get a session going

	guarded chan struct{} // closed when the guardians stand
	guard   Guard
}

// Run supervises until ctx ends, then stops all children, gives back what it holds, and returns. With Once it returns
// when the command has ended; status is then the command's own.
func Run(ctx context.Context, cfg Config) (status *child.ExitStatus, err error) {
	if cfg.Machine == nil {
		cfg.Machine = thisMachine{}
	}
	host, err := cfg.Machine.Identity()
	if err != nil {
		return nil, fmt.Errorf("identify this machine: %w", err)
	}
	s := &supervisor{cfg: cfg, log: cfg.Logger, guarded: make(chan struct{})}
	self := election.Node{
		Node: cfg.Node, Host: cfg.Host, Pid: os.Getpid(), Version: cfg.Version, Machine: host.Machine, Boot: host.Boot,
		Since: time.Now().UTC(),
	}
	for _, c := range cfg.Services {
		s.services = append(s.services, &service{
			Service: c, node: self, log: cfg.Logger, hurry: cfg.Hurry, tries: restarts{cfg: c.Restart},
			machine: cfg.Machine, says: make(chan election.Member, 1),
		})
	}
	// The guardians start while the session does. They leave last.
	standing, fail := context.WithCancelCause(ctx)
	guarding, leave := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { fail(s.keepGuard(guarding)) })
	defer wg.Wait()
	defer leave()
	err = s.sessions(standing, self)
	if cause := context.Cause(standing); err == nil && ctx.Err() == nil && cause != nil {
		err = cause
	}
	for _, v := range s.services {
		if v.finished != nil {
			return v.finished, err
		}
	}
	return nil, err
}

// keepGuard has two guardians standing until ctx ends.
func (s *supervisor) keepGuard(ctx context.Context) error {
	guard, err := s.cfg.Machine.Guard(ctx, containment(s.cfg.Services), s.cfg.Node, s.log)
	if err != nil {
		return err
	}
	for _, v := range s.services {
		v.guard = guard
	}
	s.guard = guard
	close(s.guarded)
	return guard.Run(ctx)
}

// sessions opens one session after the other until ctx ends.
func (s *supervisor) sessions(ctx context.Context, self election.Node) error {
	ctx, done := context.WithCancelCause(ctx)
	defer done(nil)
	ensemble := election.New(election.Config{
		Servers: s.cfg.Servers, Root: s.cfg.Root, Timeout: s.cfg.Timeout, Auth: s.cfg.Auth, Node: self,
		Logger: s.log.Named("election"), Dial: s.cfg.Dial, Now: s.cfg.Machine.Now,
	})
	defer ensemble.Wait()
	for epoch := uint64(1); ; epoch++ {
		began := s.cfg.Machine.Now()
		err := ensemble.Open(ctx, func(ctx context.Context, sess *election.Session) error {
			return s.serve(ctx, sess, epoch)
		})
		switch {
		case errors.Is(err, errUndead) && ctx.Err() != nil:
			return err
		case ctx.Err() != nil, s.done():
			return nil
		}
		if s.cfg.Machine.Now()-began > settled {
			s.trouble = 0
		}
		lost := errors.Is(err, election.ErrLeaseEnding) || errors.Is(err, election.ErrExpired)
		if lost && s.trouble == 0 {
			s.trouble = minTrouble
			s.log.Warn("session over, opening another", "reason", err)
			continue
		}
		s.trouble = min(max(2*s.trouble, minTrouble), maxTrouble)
		if err == nil {
			err = errGuard // they end a lease that they cannot watch over
		}
		s.log.Error("no session with ZooKeeper that can be used, trying again", "error", err, "in", s.trouble)
		pause(ctx, s.trouble)
	}
}

// A session that ends at once is not opened again at once.
const (
	settled    = 2 * time.Second
	minTrouble = 500 * time.Millisecond
	maxTrouble = 15 * time.Second
)

// done tells whether nothing is left to be supervised.
func (s *supervisor) done() bool {
	for _, v := range s.services {
		if v.finished == nil {
			return false
		}
	}
	return len(s.services) > 0
}

// serve runs all services in one session. It returns nil only when nothing of them is alive.
func (s *supervisor) serve(ctx context.Context, sess *election.Session, epoch uint64) error {
	select {
	case <-s.guarded:
	case <-ctx.Done():
		return nil
	}
	sess.Contained(s.guard.Kind())
	s.log.Info("session with ZooKeeper", "id", election.SessionName(sess.ID()), "timeout", sess.Timeout(),
		"lease", election.LeaseLength(sess.Timeout()).Round(time.Millisecond))
	if err := s.guard.Begin(epoch, election.EncodeTicket(sess.Ticket())); err != nil {
		return fmt.Errorf("tell the guardians of a new lease: %w", err)
	}
	sess.Follow(func(end time.Duration) {
		if err := s.guard.Extend(epoch, end); err != nil {
			s.log.Warn("cannot extend the lease at the guardians", "error", err)
		}
	})
	var wg sync.WaitGroup
	errs := make([]error, len(s.services))
	for i, v := range s.services {
		wg.Go(func() {
			errs[i] = v.serve(ctx, sess, epoch)
		})
	}
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()
	select {
	case <-s.guard.Over(epoch):
		sess.Stop(fmt.Errorf("%w: %w", errGuard, s.guard.Cause(epoch)))
	case <-finished:
	}
	<-finished
	err := errors.Join(errs...)
	if err != nil {
		return err
	}
	if fin := s.guard.Finish(epoch); fin != nil {
		s.log.Debug("cannot tell the guardians of the end of a lease", "error", fin)
	}
	return nil
}

// containment is the strictest wish among the services.
func containment(services []Service) string {
	mode := "auto"
	for _, v := range services {
		if v.Contain != "" && v.Contain != "auto" {
			mode = v.Contain
		}
	}
	return mode
}
