package supervisor

import "context"

// pulse answers who asks whether the supervisor is alive. The asking itself shows that takeChanges is; what follows shows that
// nobody sits on mu, and that the loop of the session turns, where there is a session.
func (s *supervisor) pulse(ctx context.Context, asks chan<- struct{}) {
	select {
	case <-s.guarded: // before that, nothing could be run
	case <-ctx.Done():
		return
	}
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over != nil {
		select {
		case s.beat <- struct{}{}:
		case <-over:
		case <-ctx.Done():
			return
		}
	}
	select {
	case asks <- struct{}{}:
	default: // it does not wait any more
	}
}

// turning says that the loop of a session turns, until what it returns is called.
func (s *supervisor) turning() func() {
	over := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = over
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over = nil
		close(over)
	}
}
