package guard

import (
	"errors"
	"time"
)

// blind handles a new guardian that could not take a tree in. P4: it must not serve. A tree that has ended meanwhile does not stop the
// next one.
func (g *Guardians) blind(now time.Duration, at int, m *Message) {
	err := errors.Join(errBlind, m.Err())
	if g.stopped || g.lost || g.slots[at].again {
		g.startFailed(now, at, err)
		return
	}
	g.dismiss(at, err)
	g.start(at)
	g.slots[at].again = true
}

// settle lets each guardian serve that has met the conditions.
func (g *Guardians) settle(now time.Duration) {
	if g.stopped {
		return
	}
	for i := range g.slots {
		s, twin := &g.slots[i], &g.slots[1-i]
		if s.post == learning && s.acked >= s.asked {
			s.post = doubted
			g.Questions.news()
			if !g.lost {
				s.asked, s.by = g.Questions.number(), now+AckLimit
				g.hands.Send(1-i, &Message{Op: OpPing, Seq: s.asked})
			}
		}
		// P4: an attacker kills both at the same moment, but on a busy machine the second takes a while to die; until then it looks alive.
		if s.post == doubted && !g.lost && twin.acked >= s.asked {
			s.post = serving
			g.Introduce()
			g.hands.Say(Replaced, i, nil)
			g.renew()
		}
	}
	if g.lost && g.slots[0].post == doubted && g.slots[1].post == doubted {
		g.lost = false
		g.slots[0].post, g.slots[1].post = serving, serving
		g.Introduce()
		g.hands.Say(Anew, 0, nil)
	}
}

func (g *Guardians) start(at int) {
	g.number++
	g.slots[at] = slot{post: starting, number: g.number}
	g.hands.Start(at, g.number)
}

// Began notes the result of a guardian's start. Unless it is wanted, nobody waits for it any more.
func (g *Guardians) Began(now time.Duration, at int, number uint64, err error) (wanted bool) {
	s := &g.slots[at]
	switch {
	case g.stopped || s.number != number || s.post != starting:
		return false
	case err != nil:
		g.startFailed(now, at, err)
		return false
	}
	s.post = learning
	for _, m := range g.State.replay() {
		g.hands.Send(at, m)
	}
	s.asked, s.by = g.Questions.number(), now+tellLimit
	g.hands.Send(at, &Message{Op: OpPing, Seq: s.asked, OK: true})
	g.Questions.news()
	return true
}

// Gone notes the end of a guardian.
func (g *Guardians) Gone(now time.Duration, at int, number uint64) {
	was := g.slots[at].post
	if g.slots[at].number != number {
		return
	}
	defer g.Questions.news()
	if g.stopped { // P4: it continues by itself
		g.slots[at] = slot{}
		return
	}
	g.dismiss(at, errVacated) // it may only have closed its socket
	switch {
	case g.lost || was != serving:
		g.startFailed(now, at, errVacated)
	case g.slots[1-at].post == serving:
		g.start(at)
	default:
		g.bothLost(at, errAlone, BothLost)
	}
}

// startFailed handles a new guardian that cannot serve.
func (g *Guardians) startFailed(now time.Duration, at int, err error) {
	switch {
	case g.stopped:
	case g.lost:
		g.again(now, err)
	default:
		g.bothLost(at, err, NotReplaced, BothLost)
	}
}

// bothLost starts over: a supervisor alone cannot keep P4, so its terms end here and now, before it kills a guardian that still watches.
func (g *Guardians) bothLost(at int, why error, said ...News) {
	g.lost, g.pause = true, firstPause
	g.StrikeAll(ErrGuardiansLost)
	g.dismissBoth(why)
	g.start(0)
	g.start(1)
	for _, what := range said {
		g.hands.Say(what, at, why)
	}
}

// again handles a new pair that could not be started.
func (g *Guardians) again(now time.Duration, why error) {
	g.hands.Say(NotStarted, 0, why)
	g.dismissBoth(why)
	g.retryAt = now + g.pause
	g.pause = min(2*g.pause, longestPause)
}
