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

	errSilent   = errors.New("it does not answer")
	errAlone    = errors.New("the other one is gone too")
	errBlind    = errors.New("it cannot take a tree in")
	errOutdated = errors.New("it is of a previous version")
	errGaveUp   = errors.New("the guardians do not answer")
	errVacated  = errors.New("it has ended")
)

// SupervisorHands do what Guardians decides, while the Guardians's caller holds the lock that guards it, so no method waits. KillNow and
// Kill may be delayed until that lock is free, but keep their order.
type SupervisorHands interface {
	// Send passes a message on to the guardian at a place. Messages that a full socket does not take follow in their order: a guardian
	// that leaves it full does not answer. With OpTwin, the guardian at the other place goes along.
	Send(at int, m *Message)
	// Start begins to start a guardian for a place. Its Began has to follow.
	Start(at int, number uint64)
	// Kill kills the guardian at a place, if there is one. Its Gone follows.
	Kill(at int, why error)
	// KillNow orders the death of every tree.
	KillNow()
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

// Guardians is a supervisor's view of its two guardians: which of them live, how far each one is, and which questions are open. Its user
// holds a lock from each change until its messages are sent, so that messages have the order of the changes.
type Guardians struct {
	State     *State     // all that they have to know
	Questions *Questions // to both of them

	places
	number  uint64 // of the newest guardian
	pingAt  time.Duration
	lost    bool          // both are being started again
	retryAt time.Duration // then; 0: they are being started
	pause   time.Duration
}

// NewGuardians makes Guardians whose guardians must still be started.
func NewGuardians(hands SupervisorHands) *Guardians {
	p := &Guardians{places: places{hands: hands}}
	p.Questions = newQuestions(&p.places)
	p.State = &State{to: p.Questions}
	return p
}

// Present notes guardians that live and know everything: at the beginning, or because a previous image of the supervisor had them.
func (g *Guardians) Present(now time.Duration, acked [2]uint64) (numbers [2]uint64) {
	for i := range g.slots {
		g.number++
		g.slots[i] = slot{post: serving, number: g.number, acked: acked[i]}
		numbers[i] = g.number
	}
	g.pingAt = now + PingEvery
	return numbers
}

// Introduce tells each guardian about the other one.
func (g *Guardians) Introduce() {
	for i := range g.slots {
		g.hands.Send(i, &Message{Op: OpTwin})
	}
	g.Questions.news()
}

// Heard handles a guardian's message.
func (g *Guardians) Heard(now time.Duration, at int, number uint64, m *Message) {
	s := &g.slots[at]
	if s.number != number || s.post < learning {
		return
	}
	switch m.Op {
	case OpNack:
		// A number of its own would acknowledge messages that must still be replayed.
		if s.post == learning && m.Seq == 0 && m.Tree > 0 {
			g.blind(now, at, m)
			return
		}
		if m.Refusal == RefusedWord && s.post == serving && !g.stopped { // the one that replaces it is of this image, and answers
			s.outdated = true
			g.renew()
			return
		}
		g.Questions.fail(m.Seq, m.Err())
		fallthrough
	case OpAck:
		s.acked = max(s.acked, m.Seq)
		g.settle(now)
		g.Questions.answer()
	case OpEnded:
		g.State.end(m.Epoch)
	}
}

// StrikeAll ends every epoch, and orders the death of every tree.
func (g *Guardians) StrikeAll(cause error) {
	for _, l := range g.State.leases {
		l.over(cause)
	}
	g.hands.KillNow()
}

// Stop ends all replacing. Living guardians stay: they kill processes that their supervisor may leave behind. Questions are answered,
// or time out, as before.
func (g *Guardians) Stop() {
	g.stopped = true
	g.Questions.news()
}

// Due does what is due, and returns when to call it again.
func (g *Guardians) Due(now time.Duration) (next time.Duration) {
	for _, seq := range g.Questions.due(now) {
		g.killSilent(seq)
	}
	if g.stopped {
		return g.Next()
	}
	if g.lost && g.retryAt > 0 && now >= g.retryAt {
		g.retryAt = 0
		g.start(0)
		g.start(1)
	}
	for i := range g.slots {
		s := &g.slots[i]
		if !g.awaits(s) || now < s.by {
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
		g.startFailed(now, i, err)
	}
	if now >= g.pingAt {
		g.pingAt = now + PingEvery // also after a freeze, a guardian has that long to answer
		g.ping(now)
	}
	return g.Next()
}

// Next is when Due may have work; 0: never.
func (g *Guardians) Next() (next time.Duration) {
	next = g.Questions.next()
	if g.stopped {
		return next
	}
	next = sooner(next, sooner(g.pingAt, g.retryAt))
	for _, s := range g.slots {
		if g.awaits(&s) {
			next = sooner(next, s.by)
		}
	}
	return next
}

// awaits reports whether a new guardian, or its twin, has to answer before it serves.
func (g *Guardians) awaits(s *slot) bool { return s.post == learning || s.post == doubted && !g.lost }

// ping finds a guardian that is alive but does not answer, such as a stopped one.
func (g *Guardians) ping(now time.Duration) {
	if len(g.State.leases) == 0 {
		return
	}
	for i := range g.slots {
		s := &g.slots[i]
		switch {
		case s.post < doubted:
		case s.ping > s.acked && s.looksAgain(s.ping):
			g.pingAt = now + secondLook
		case s.ping > s.acked:
			g.hands.Kill(i, errSilent)
		default:
			s.ping = g.Questions.number()
			g.hands.Send(i, &Message{Op: OpPing, Seq: s.ping})
		}
	}
}
