package child

import (
	"context"
	"errors"
	"time"

	"understudy/supervisor/guard"
)

// demandHeed finds a guardian that is alive but does not answer, such as a stopped one.
func (g *Guard) demandHeed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.epochs) == 0 {
		return
	}
	for _, s := range g.seats {
		if s == nil || !s.live {
			continue
		}
		if s.heed > s.acked {
			s.because(errors.New("it does not answer"))
			s.kill()
			continue
		}
		g.seq++
		s.heed = g.seq
		g.send(s, &guard.Message{Op: guard.OpPing, Seq: g.seq})
	}
}

// awake asks a guardian for an answer. Who kills both does so within a moment, but on a busy machine the second takes a
// while to die; until then it looks alive.
func (g *Guard) awake(ctx context.Context, s *seat) bool {
	g.mu.Lock()
	g.seq++
	seq := g.seq
	g.send(s, &guard.Message{Op: guard.OpPing, Seq: seq})
	g.mu.Unlock()
	limit := time.NewTimer(ackLimit)
	defer limit.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		g.mu.Lock()
		acked, changed := s.acked >= seq, g.changed
		g.mu.Unlock()
		if acked || s.gone() {
			return acked && !s.gone()
		}
		select {
		case <-changed:
		case <-look.C:
		case <-limit.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
