package guard

import (
	"errors"
	"time"
)

// blind handles a new guardian that could not take a tree in. P4: it must not serve. A tree that has ended meanwhile does not stop the
// next one.
func (p *Pair) blind(now time.Duration, at int, m *Message) {
	err := errors.Join(errBlind, m.Err())
	if p.stopped || p.lost || p.slots[at].again {
		p.startFailed(now, at, err)
		return
	}
	p.dismiss(at, err)
	p.start(at)
	p.slots[at].again = true
}

// settle lets each guardian serve that has met the conditions.
func (p *Pair) settle(now time.Duration) {
	if p.stopped {
		return
	}
	for i := range p.slots {
		s, twin := &p.slots[i], &p.slots[1-i]
		if s.post == learning && s.acked >= s.asked {
			s.post = doubted
			p.Questions.news()
			if !p.lost {
				s.asked, s.by = p.Questions.number(), now+AckLimit
				p.hands.Send(1-i, &Message{Op: OpPing, Seq: s.asked})
			}
		}
		// P4: an attacker kills both at the same moment, but on a busy machine the second takes a while to die; until then it looks alive.
		if s.post == doubted && !p.lost && twin.acked >= s.asked {
			s.post = serving
			p.Introduce()
			p.hands.Say(Replaced, i, nil)
		}
	}
	if p.lost && p.slots[0].post == doubted && p.slots[1].post == doubted {
		p.lost = false
		p.slots[0].post, p.slots[1].post = serving, serving
		p.Introduce()
		p.hands.Say(Anew, 0, nil)
	}
}

func (p *Pair) start(at int) {
	p.number++
	p.slots[at] = slot{post: starting, number: p.number}
	p.hands.Start(at, p.number)
}

// Began notes the result of a guardian's start. Unless it is wanted, nobody waits for it any more.
func (p *Pair) Began(now time.Duration, at int, number uint64, err error) (wanted bool) {
	s := &p.slots[at]
	switch {
	case p.stopped || s.number != number || s.post != starting:
		return false
	case err != nil:
		p.startFailed(now, at, err)
		return false
	}
	s.post = learning
	for _, m := range p.Ledger.replay() {
		p.hands.Send(at, m)
	}
	s.asked, s.by = p.Questions.number(), now+tellLimit
	p.hands.Send(at, &Message{Op: OpPing, Seq: s.asked, OK: true})
	p.Questions.news()
	return true
}

// Gone notes the end of a guardian.
func (p *Pair) Gone(now time.Duration, at int, number uint64) {
	was := p.slots[at].post
	if p.slots[at].number != number {
		return
	}
	defer p.Questions.news()
	if p.stopped { // P4: it continues by itself
		p.slots[at] = slot{}
		return
	}
	p.dismiss(at, errVacated) // it may only have closed its socket
	switch {
	case p.lost || was != serving:
		p.startFailed(now, at, errVacated)
	case p.slots[1-at].post == serving:
		p.start(at)
	default:
		p.bothLost(at, errAlone, BothLost)
	}
}

// startFailed handles a new guardian that cannot serve.
func (p *Pair) startFailed(now time.Duration, at int, err error) {
	switch {
	case p.stopped:
	case p.lost:
		p.again(now, err)
	default:
		p.bothLost(at, err, NotReplaced, BothLost)
	}
}

// bothLost starts over: a supervisor alone cannot keep P4, so its terms end here and now, before it kills a guardian that still watches.
func (p *Pair) bothLost(at int, why error, said ...News) {
	p.lost, p.pause = true, firstPause
	p.StrikeAll(ErrGuardiansLost)
	p.dismissBoth(why)
	p.start(0)
	p.start(1)
	for _, what := range said {
		p.hands.Say(what, at, why)
	}
}

// again handles a new pair that could not be started.
func (p *Pair) again(now time.Duration, why error) {
	p.hands.Say(NotStarted, 0, why)
	p.dismissBoth(why)
	p.retryAt = now + p.pause
	p.pause = min(2*p.pause, longestPause)
}
