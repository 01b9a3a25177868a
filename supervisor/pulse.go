package supervisor

import (
	"context"
	"sync"
)

// pulse shows that the loop of a session runs, if there is a session.
type pulse struct {
	beat chan struct{} // taken by the loop

	mu   sync.Mutex    // guards over
	over chan struct{} // closed at the loop's end; nil while there is none
}

// answer answers that the supervisor is alive, after the loop has taken a beat.
func (p *pulse) answer(ctx context.Context, asks chan<- struct{}) {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over != nil {
		select {
		case p.beat <- struct{}{}:
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

// turning notes that the loop of a session runs. The returned function ends that.
func (p *pulse) turning() func() {
	over := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = over
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over = nil
		close(over)
	}
}
