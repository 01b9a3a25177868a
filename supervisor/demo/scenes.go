package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"understudy/supervisor/wait"
)

// fault is a way to break the active node, and how the node comes back.
type fault struct {
	name   string
	short  string
	what   string // format: the node's name
	harm   func(*node) error
	mend   func(*show, *node) error
	became condition
}

var faults = []fault{
	{
		name: "stop", short: "stop (SIGTERM)", became: stopped,
		what: "%s is asked to stop: the program ends, the lock is given back",
		harm: func(n *node) error { return n.signal(syscall.SIGTERM) },
		mend: (*show).restart,
	},
	{
		name: "kill", short: "kill -9", became: killed,
		what: "%s's supervisor is killed: its guardians end the program",
		harm: func(n *node) error { return n.signal(syscall.SIGKILL) },
		mend: (*show).restart,
	},
	{
		name: "freeze", short: "freeze (SIGSTOP)", became: frozen,
		what: "%s's supervisor is frozen: its guardians end the program in time",
		harm: func(n *node) error { return n.signal(syscall.SIGSTOP) },
		mend: func(_ *show, n *node) error {
			n.is(up)
			return n.signal(syscall.SIGCONT)
		},
	},
	{
		name: "cut", short: "cut off from ZooKeeper", became: cutOff,
		what: "%s is cut off from ZooKeeper: it ends the program before its turn is over",
		harm: func(n *node) error { n.gate.set(true); return nil },
		mend: func(_ *show, n *node) error {
			n.gate.set(false)
			n.is(up)
			return nil
		},
	},
}

const (
	pauseAround = 1200 * time.Millisecond // for the eye, before and after
	takeover    = 20 * time.Second        // more than any fault may cost
	comeback    = 30 * time.Second
)

// show is the stage with an audience.
type show struct {
	*stage
	*screen
	exe     string
	pause   time.Duration
	caption atomic.Pointer[string]
}

func (s *show) restart(n *node) error {
	select {
	case <-n.gone():
	case <-time.After(stopPatience):
		return fmt.Errorf("%s does not end", n.name)
	}
	return s.start(n, s.exe)
}

func (s *show) titled(format string, args ...any) {
	caption := fmt.Sprintf(format, args...)
	s.caption.Store(&caption)
}

func (s *show) title() string {
	if caption := s.caption.Load(); caption != nil {
		return *caption
	}
	return ""
}

// errInterrupted is the user's Ctrl-C.
var errInterrupted = errors.New("interrupted")

// until waits for a condition.
func (s *show) until(ctx context.Context, limit time.Duration, what string, holds func() bool) error {
	began := time.Now()
	for !holds() {
		if !wait.For(ctx, 20*time.Millisecond) {
			return errInterrupted
		}
		if time.Since(began) > limit {
			s.say("\nThe last words of the logs:\n%s", s.lastWords())
			return fmt.Errorf("waited %v: %s", limit, what)
		}
	}
	return nil
}

func (s *show) linger(ctx context.Context, d time.Duration) error {
	if !wait.For(ctx, d) {
		return errInterrupted
	}
	return nil
}

// runFault breaks the active node, waits for another one to take over and for the broken one to come back, and measures.
func (s *show) runFault(ctx context.Context, f fault) (FaultResult, error) {
	victim, previous, err := s.calm(ctx)
	if err != nil {
		return FaultResult{}, err
	}
	s.titled(f.what, victim.name)
	if !s.live() {
		s.say("%s", s.title())
	}
	victim.is(f.became)
	if err := f.harm(victim); err != nil {
		return FaultResult{}, err
	}
	err = s.until(ctx, takeover, "no other node runs the program", func() bool {
		l, _ := newest(s.lives())
		return l.first > previous.first && l.node != victim.name
	})
	if err != nil {
		return FaultResult{}, err
	}
	if err := s.linger(ctx, cmp.Or(s.pause, pauseAround)); err != nil {
		return FaultResult{}, err
	}
	s.titled("%s comes back, and stands by.", victim.name)
	if err := f.mend(s, victim); err != nil {
		return FaultResult{}, err
	}
	if err := s.until(ctx, comeback, victim.name+" did not come back", s.settled); err != nil {
		return FaultResult{}, err
	}
	return s.measure(f, previous), nil
}

// calm returns with the active node, when all has been well for a while.
func (s *show) calm(ctx context.Context) (*node, life, error) {
	for {
		if err := s.until(ctx, comeback, "not all nodes are in place", s.settled); err != nil {
			return nil, life{}, err
		}
		s.titled("All is well.")
		if err := s.linger(ctx, cmp.Or(s.pause, pauseAround)); err != nil {
			return nil, life{}, err
		}
		if n, l, ok := s.active(); ok && s.settled() {
			return n, l, nil
		}
	}
}

// measure looks at all that began after a life.
func (s *show) measure(f fault, previous life) FaultResult {
	r := FaultResult{Fault: f.name, What: f.short, From: previous.node}
	for _, h := range handovers(s.lives()) {
		if h.to.first <= previous.first {
			continue
		}
		r.To = h.to.node
		r.gap += h.gap
		r.overlap = max(r.overlap, h.overlap)
	}
	r.GapMs, r.OverlapMs = ms(r.gap), ms(r.overlap)
	return r
}

func ms(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}
