package supervisor

import (
	"context"
	"time"

	"understudy/election"
	"understudy/supervisor/wait"
)

// exposure is what others than our credentials may change in ZooKeeper in spite of them.
type exposure struct {
	look chan struct{} // holds one when it is to be looked at
	note string        // guarded by supervisor.mu
}

// How often it is looked whether what was open to others is closed by now. Of a large tree that takes long, and it shall not be
// ZooKeeper's main work.
const (
	exposedAgain = 10 * time.Second
	exposedShare = 20
)

// watchExposure looks when a session begins, when config or credentials change, and while something is open.
func (s *supervisor) watchExposure(ctx context.Context, sess *election.Session) {
	if s.credentials.read == nil {
		return
	}
	for {
		began := time.Now()
		open := s.lookExposed(ctx, sess)
		again := time.NewTimer(max(exposedAgain, exposedShare*time.Since(began)))
		if !open {
			again.Stop()
		}
		select {
		case <-again.C:
		case <-s.exposure.look:
			again.Stop()
		case <-ctx.Done():
			again.Stop()
			return
		}
	}
}

// lookExposed looks, and says when that changes, what others than the credentials may change in ZooKeeper: a tree that was made
// without them, or that a stranger made beforehand, is not closed by what is created in it.
func (s *supervisor) lookExposed(ctx context.Context, sess *election.Session) (open bool) {
	all, err := sess.Exposed(ctx, s.names())
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("whether others may change what is in ZooKeeper is not known", "error", err)
		}
		return true // for all that is known
	}
	note := election.ExposedNote(all)
	s.mu.Lock()
	was := s.exposure.note
	s.exposure.note = note
	s.cfg.Observer.Warned(election.Bounded(s.allWarnings())) // in the order of the changes
	s.mu.Unlock()
	switch {
	case note == was:
	case note != "":
		s.log.Warn("ZooKeeper is open to others", "note", note)
		wait.Poke(s.stir)
	default:
		s.log.Info("ZooKeeper is not open to others any more")
		wait.Poke(s.stir)
	}
	return note != ""
}

func (s *supervisor) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.services))
	for _, v := range s.services {
		names = append(names, v.Name())
	}
	return names
}
