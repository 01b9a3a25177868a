package sim

import (
	"errors"
	"sync"
	"time"
)

// errCrashed is what a process that was killed gets from everything it still calls: nothing of it reaches the world.
var errCrashed = errors.New("this process is no more")

// gate stands before every effect of a simulated process. A frozen process waits at it until it thaws; a killed one gets
// through to nothing. What happens inside the process meanwhile (a timer that fires, a channel that closes) is as if its
// threads had been scheduled that unfairly: it can be seen only through a gate.
type gate struct {
	jitter func() time.Duration // how late a thread wakes after the thaw

	mu     sync.Mutex // guards the fields below
	frozen bool
	dead   bool
	opened chan struct{} // closed when the process thaws or dies
	later  []func()      // what it did that takes effect at the thaw
}

func newGate(jitter func() time.Duration) *gate { return &gate{jitter: jitter} }

// pass waits while the process is frozen, and tells whether it lives.
func (g *gate) pass() bool {
	for {
		g.mu.Lock()
		if g.dead || !g.frozen {
			alive := !g.dead
			g.mu.Unlock()
			return alive
		}
		opened := g.opened
		g.mu.Unlock()
		<-opened
		if d := g.jitter(); d > 0 {
			time.Sleep(d)
		}
	}
}

// alive tells whether the process lives, without waiting.
func (g *gate) alive() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.dead
}

// running tells whether it lives and is not frozen.
func (g *gate) running() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.dead && !g.frozen
}

// do does something without waiting: now, at the thaw, or, for a killed process, never.
func (g *gate) do(f func()) {
	g.mu.Lock()
	if g.frozen && !g.dead {
		g.later = append(g.later, f)
		g.mu.Unlock()
		return
	}
	dead := g.dead
	g.mu.Unlock()
	if !dead {
		f()
	}
}

func (g *gate) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead || g.frozen {
		return
	}
	g.frozen, g.opened = true, make(chan struct{})
}

func (g *gate) thaw() {
	g.mu.Lock()
	later := g.later
	g.later = nil
	if g.frozen {
		g.frozen = false
		close(g.opened)
	}
	g.mu.Unlock()
	for _, f := range later {
		f()
	}
}

func (g *gate) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead, g.later = true, nil
	if g.frozen {
		g.frozen = false
		close(g.opened)
	}
}
