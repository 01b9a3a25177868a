package guard

import (
	"errors"
	"time"
)

const (
	// AckLimit is how long a guardian may take to answer. A silent one is killed, and replaced.
	AckLimit = time.Second
	// PingEvery is how often the supervisor asks both whether they are awake.
	PingEvery = 2 * time.Second
	// secondLook is how long a guardian has once a limit is over: the machine may have stood still, guardians and all.
	secondLook = AckLimit / 2

	tellLimit = 2 * time.Second // for a new guardian to learn everything
	giveUp    = 4 * AckLimit    // for a question, also when guardians are replaced meanwhile

	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

var (
	// ErrGuardiansLost says that for a while only the supervisor watched its trees.
	ErrGuardiansLost = errors.New("both guardians were lost at once")

	errSilent  = errors.New("it does not answer")
	errAlone   = errors.New("the other one is gone too")
	errBlind   = errors.New("it cannot take a tree in")
	errGaveUp  = errors.New("the guardians do not answer")
	errVacated = errors.New("it has ended")
)

// PairHands do what a Pair decides, while the Pair's caller holds the lock that guards it, so no method waits. Strike and Kill may be
// delayed until that lock is free, but keep their order.
type PairHands interface {
	// Send passes a message on to the guardian at a place. Messages that a full socket does not take follow in their order: a guardian
	// that leaves it full does not answer. With OpTwin, the guardian at the other place goes along.
	Send(at int, m *Message)
	// Start begins to start a guardian for a place. Its Began has to follow.
	Start(at int, number uint64)
	// Kill kills the guardian at a place, if there is one. Its Gone follows.
	Kill(at int, why error)
	// Strike orders the death of every tree.
	Strike()
	// Say logs an event of the guardians. Nothing waits for that.
	Say(what News, at int, why error)
}

// News is an event of the guardians.
type News uint8

// The events.
const (
	Replaced News = iota
	NotReplaced
	BothLost
	NotStarted
	Anew
)

// Pair is a supervisor's view of its two guardians: which of them live, how far each one is, and which questions are open. Its user
// holds a lock from each change until its messages are sent, so that messages have the order of the changes.
type Pair struct {
	Ledger    *Ledger    // all that they have to know
	Questions *Questions // to both of them

	places
	number  uint64 // of the newest guardian
	pingAt  time.Duration
	lost    bool          // both are being started again
	retryAt time.Duration // then; 0: they are being started
	pause   time.Duration
}

// NewPair makes a Pair whose guardians must still be started.
func NewPair(hands PairHands) *Pair {
	p := &Pair{places: places{hands: hands}}
	p.Questions = newQuestions(&p.places)
	p.Ledger = &Ledger{to: p.Questions}
	return p
}

// Present notes guardians that live and know everything: at the beginning, or because a former image of the supervisor had them.
func (p *Pair) Present(now time.Duration, acked [2]uint64) (numbers [2]uint64) {
	for i := range p.slots {
		p.number++
		p.slots[i] = slot{post: serving, number: p.number, acked: acked[i]}
		numbers[i] = p.number
	}
	p.pingAt = now + PingEvery
	return numbers
}

// Introduce tells each guardian about the other one.
func (p *Pair) Introduce() {
	for i := range p.slots {
		p.hands.Send(i, &Message{Op: OpTwin})
	}
	p.Questions.news()
}

// Heard handles a guardian's message.
func (p *Pair) Heard(now time.Duration, at int, number uint64, m *Message) {
	s := &p.slots[at]
	if s.number != number || s.post < learning {
		return
	}
	switch m.Op {
	case OpNack:
		// A number of its own would acknowledge messages that must still be replayed.
		if s.post == learning && m.Seq == 0 && m.Tree > 0 {
			p.blind(now, at, m)
			return
		}
		p.Questions.fail(m.Seq, m.Err())
		fallthrough
	case OpAck:
		s.acked = max(s.acked, m.Seq)
		p.settle(now)
		p.Questions.answer()
	case OpEnded:
		p.Ledger.end(m.Epoch)
	}
}

// StrikeAll ends every epoch, and orders the death of every tree.
func (p *Pair) StrikeAll(cause error) {
	for _, e := range p.Ledger.epochs {
		e.over(cause)
	}
	p.hands.Strike()
}

// Stop ends all replacing. Living guardians stay: they kill processes that their supervisor may leave behind. Questions are answered,
// or time out, as before.
func (p *Pair) Stop() {
	p.stopped = true
	p.Questions.news()
}

// Due does what is due, and returns when to call it again.
func (p *Pair) Due(now time.Duration) (next time.Duration) {
	for _, seq := range p.Questions.due(now) {
		p.killSilent(seq)
	}
	if p.stopped {
		return p.Next()
	}
	if p.lost && p.retryAt > 0 && now >= p.retryAt {
		p.retryAt = 0
		p.start(0)
		p.start(1)
	}
	for i := range p.slots {
		s := &p.slots[i]
		if !p.awaits(s) || now < s.by {
			continue
		}
		if s.looksAgain(s.asked) {
			s.by = now + secondLook
			continue
		}
		err := errSilent
		if s.post == doubted {
			err = errAlone
		}
		p.startFailed(now, i, err)
	}
	if now >= p.pingAt {
		p.pingAt = now + PingEvery // also after a freeze, a guardian has that long to answer
		p.ping(now)
	}
	return p.Next()
}

// Next is when Due may have work; 0: never.
func (p *Pair) Next() (next time.Duration) {
	next = p.Questions.next()
	if p.stopped {
		return next
	}
	next = sooner(next, sooner(p.pingAt, p.retryAt))
	for _, s := range p.slots {
		if p.awaits(&s) {
			next = sooner(next, s.by)
		}
	}
	return next
}

// awaits reports whether a new guardian, or its twin, has to answer before it serves.
func (p *Pair) awaits(s *slot) bool { return s.post == learning || s.post == doubted && !p.lost }

// ping finds a guardian that is alive but does not answer, such as a stopped one.
func (p *Pair) ping(now time.Duration) {
	if len(p.Ledger.epochs) == 0 {
		return
	}
	for i := range p.slots {
		s := &p.slots[i]
		switch {
		case s.post < doubted:
		case s.ping > s.acked && s.looksAgain(s.ping):
			p.pingAt = now + secondLook
		case s.ping > s.acked:
			p.hands.Kill(i, errSilent)
		default:
			s.ping = p.Questions.number()
			p.hands.Send(i, &Message{Op: OpPing, Seq: s.ping})
		}
	}
}
