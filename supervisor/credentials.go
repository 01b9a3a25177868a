package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/election"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/wait"
)

// credentials is what ZooKeeper knows this node by, and the file that it is from.
type credentials struct {
	read     func() (*election.Auth, error) // the file, now and then; nil: there are none
	shown    *election.Auth                 // guarded by supervisor.mu
	look     chan struct{}                  // holds one when the file is to be looked at
	withheld string                         // why what the file holds is not shown; guarded by supervisor.mu
}

// lookAgain is how long a changed file of credentials may go unnoticed.
const lookAgain = 2 * time.Second

func newCredentials(a *election.Auth) credentials {
	c := credentials{shown: a, look: make(chan struct{}, 1)}
	if a != nil && a.File != "" {
		c.read = keyfile.Keep(a.Anew, nil)
	}
	return c
}

// keepCredentials shows ZooKeeper what the file of credentials holds, as it changes, while a session stands. The services do
// not notice.
func (s *supervisor) keepCredentials(ctx context.Context, sess *election.Session, ensemble *election.Ensemble) {
	if s.credentials.read == nil {
		return
	}
	for {
		s.renew(ctx, sess, ensemble)
		due := time.NewTimer(lookAgain)
		select {
		case <-due.C:
		case <-s.credentials.look:
			due.Stop()
		case <-ctx.Done():
			due.Stop()
			return
		}
	}
}

func (s *supervisor) renew(ctx context.Context, sess *election.Session, ensemble *election.Ensemble) {
	c := &s.credentials
	now, err := c.read()
	if err != nil || !s.differs(now) {
		s.withhold("")
		return
	}
	switch err := sess.Renew(ctx, now); {
	case err == nil:
		s.showing(now)
		ensemble.Show(now)
		s.withhold("")
		wait.Poke(s.exposure.look)
		s.log.Info("changed credentials are shown to ZooKeeper", "file", now.File, "how_many", len(now.Secrets))
	case errors.Is(err, election.ErrNotOurs), errors.Is(err, election.ErrNoAuth):
		s.withhold(fmt.Sprintf("the changed credentials in %s are not taken up: %v; keep the former line beside the new one and run `understudy check --repair-acl` first",
			now.File, err))
	}
}

// refused is told that ZooKeeper does not let a session's node register: the file may know better.
func (s *supervisor) refused(ensemble *election.Ensemble) {
	c := &s.credentials
	if c.read == nil {
		return
	}
	if now, err := c.read(); err == nil && s.differs(now) {
		s.showing(now)
		ensemble.Show(now)
		s.log.Warn("ZooKeeper refuses the former credentials, trying those that the file holds now", "file", now.File)
	}
}

// unshown tells whether the file holds other credentials than are shown, and has them looked at. Another image of this process
// would show them, good for what there is or not.
func (s *supervisor) unshown() bool {
	if s.credentials.read == nil {
		return false
	}
	now, err := s.credentials.read()
	if err != nil || !s.differs(now) {
		return false
	}
	wait.Poke(s.credentials.look)
	return true
}

func (s *supervisor) differs(now *election.Auth) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.credentials.shown.Same(now)
}

func (s *supervisor) showing(now *election.Auth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.credentials.shown = now
}

// withhold tells, once, why changed credentials are not shown; "": they are.
func (s *supervisor) withhold(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.credentials.withheld == why {
		return
	}
	s.credentials.withheld = why
	if why != "" {
		s.log.Error("the former credentials stay in force", "why", why)
	}
	wait.Poke(s.stir)
}

// withheld tells why changed credentials are not shown; "": they are.
func (s *supervisor) withheld() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.credentials.withheld
}
