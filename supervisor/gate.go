package supervisor

import (
	"context"
	"time"

	"understudy/election"
	"understudy/fencing/agent"
	"understudy/supervisor/child"
	"understudy/supervisor/failsafe"
)

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
	guard Guard
	epoch uint64
}

func (g guardians) Extend(end time.Duration) error { return g.guard.Extend(g.epoch, end) }

func (g guardians) Shorten(ctx context.Context, end, session time.Duration) error {
	return g.guard.Shorten(ctx, g.epoch, end, child.Watchdog{Timeout: election.Watchdog(session), After: election.AfterLease(session)})
}
