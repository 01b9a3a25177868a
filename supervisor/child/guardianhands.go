package child

import (
	"context"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
)

// guardianHands do what the pair decides, while guardians.mu is held.
type guardianHands struct{ *guardians }

// Send implements guard.SupervisorHands.
func (g guardianHands) Send(at int, m *guard.Message) {
	s := g.at[at]
	if s == nil {
		return
	}
	if m.Op == guard.OpTwin {
		twin := g.at[1-at]
		if twin == nil {
			return
		}
		m.Along = twin.pidfd
	}
	if s.clogged {
		s.pending = append(s.pending, m)
		return
	}
	if !s.send(m) {
		s.clogged, s.pending = true, []*guard.Message{m}
		g.tasks.Go(func() { g.unclog(s) })
	}
}

// Start implements guard.SupervisorHands.
func (g guardianHands) Start(at int, number uint64) {
	g.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		s, err := g.startGuardian(ctx, at)
		cancel()
		unlock := g.lock()
		previous := g.at[at]
		if err == nil {
			s.number = number
			g.at[at] = s
		}
		wanted := g.pair.Began(wire.Now(), at, number, err)
		if wanted {
			g.attend(at, s)
			unlock()
			return
		}
		g.at[at] = previous
		unlock()
		if err == nil {
			s.destroy()
		}
	})
}

// Kill implements guard.SupervisorHands.
func (g guardianHands) Kill(at int, why error) {
	if s := g.at[at]; s != nil {
		s.because(why)
		g.later = append(g.later, s.kill)
	}
}

// KillNow implements guard.SupervisorHands.
func (g guardianHands) KillNow() {
	all := g.trees()
	g.later = append(g.later, func() {
		for _, t := range all {
			t.strike()
		}
	})
}

// Say implements guard.SupervisorHands.
func (g guardianHands) Say(what guard.News, at int, why error) {
	log, now, previous := g.log, g.at[at], g.gone[at]
	switch what {
	case guard.Replaced:
		g.words.add(log.Warn, "guardian replaced", "index", at+1, "gone", previous.pid, "new", now.pid, "because", previous.cause())
	case guard.NotReplaced:
		g.words.add(log.Error, "guardian not replaced", "index", at+1, "error", why)
	case guard.BothLost:
		g.words.add(log.Error, "guardians lost, ending all trees")
	case guard.NotStarted:
		g.words.add(log.Error, "no guardians could be started", "error", why)
	case guard.Anew:
		g.words.add(log.Warn, "a new pair of guardians watches")
	}
}
