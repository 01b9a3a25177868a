package guard

import "time"

// places holds how far each of the two guardians is.
type places struct {
	hands   SupervisorHands
	slots   [2]slot
	stopped bool // nobody is replaced any more
}

// post says how far a guardian is.
type post uint8

const (
	vacant   post = iota
	starting      // a process is being started
	learning      // it is learning everything
	doubted       // it knows everything, but its twin must still show that it lives
	serving
)

// slot is the place of one guardian.
type slot struct {
	post     post
	number   uint64
	acked    uint64        // it has done everything up to here
	ping     uint64        // the newest question whether it is awake
	asked    uint64        // learning: to it; doubted: to its twin, after everything was told
	by       time.Duration // until when that must be answered
	overdue  uint64        // the newest of these two whose limit was over once
	again    bool          // its predecessor could not take a tree in
	outdated bool          // it does not know a word
}

// looksAgain reports whether the limit of a question is over for the first time.
func (s *slot) looksAgain(asked uint64) bool {
	first := s.overdue != asked
	s.overdue = asked
	return first
}

// broadcast sends to all living guardians. One that is learning everything gets it after that.
func (p *places) broadcast(m *Message) {
	for i, s := range p.slots {
		if s.post >= learning {
			p.hands.Send(i, m)
		}
	}
}

// have reports whether both have done everything up to seq.
func (p *places) have(seq uint64) bool {
	for _, s := range p.slots {
		if p.stopped && s.post < learning {
			continue // no guardian will come that could answer, or would have to
		}
		if s.post < learning || s.outdated || s.acked < seq {
			return false
		}
	}
	return true
}

// killSilent kills the guardians that have not answered, so that they are replaced.
func (p *places) killSilent(seq uint64) {
	for i, s := range p.slots {
		if s.post >= doubted && s.acked < seq {
			p.hands.Kill(i, errSilent)
		}
	}
}

// renew kills a guardian that does not know a word, so that it is replaced, while the other one serves.
func (p *places) renew() {
	for i, s := range p.slots {
		if s.outdated && p.slots[1-i].post == serving {
			p.hands.Kill(i, errOutdated)
			return
		}
	}
}

func (p *places) dismiss(at int, why error) {
	p.hands.Kill(at, why)
	p.slots[at] = slot{}
}

func (p *places) dismissBoth(why error) {
	for i := range p.slots {
		p.dismiss(i, why)
	}
}
