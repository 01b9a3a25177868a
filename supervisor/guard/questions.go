package guard

import (
	"cmp"
	"slices"
	"time"
)

// Questions are the open questions to both guardians.
type Questions struct {
	places  *places
	last    uint64      // the newest number
	open    []*question // in the order of their numbers
	over    map[uint64]error
	changed chan struct{}
}

func newQuestions(p *places) *Questions {
	return &Questions{places: p, last: 1, over: map[uint64]error{}, changed: make(chan struct{})} // the setup has the first number
}

type question struct {
	seq    uint64
	at     time.Duration
	silent bool          // the guardians that have not answered were killed
	limit  time.Duration // for the answers; past it, a second look is taken
	again  bool          // that is over, too
	over   chan struct{} // closed then; each question has its own: a thousand that are open at once would wake each other
}

func (q *Questions) number() uint64 {
	q.last++
	return q.last
}

// Changed is closed at the next change that a goroutine may wait for, other than the end of a question.
func (q *Questions) Changed() <-chan struct{} { return q.changed }

func (q *Questions) news() {
	q.answer()
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *Questions) broadcast(m *Message) { q.places.broadcast(m) }

// ask broadcasts a question that both have to answer.
func (q *Questions) ask(now time.Duration, m *Message) (seq uint64) {
	m.Seq = q.number()
	q.open = append(q.open, &question{seq: m.Seq, at: now, limit: now + AckLimit, over: make(chan struct{})})
	q.broadcast(m)
	return m.Seq
}

// Rouse asks both guardians to show that they are awake.
func (q *Questions) Rouse(now time.Duration) (seq uint64) { return q.ask(now, &Message{Op: OpPing}) }

// Over is closed once a question is over: then Answered says how.
func (q *Questions) Over(seq uint64) <-chan struct{} {
	if i, there := q.find(seq); there {
		return q.open[i].over
	}
	return closed
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Answered reports whether both guardians have answered a question, or why not. Callers repeat it until it is done, or call Forget.
func (q *Questions) Answered(seq uint64) (done bool, err error) {
	if _, there := q.find(seq); there {
		return false, nil
	}
	err = q.over[seq]
	delete(q.over, seq)
	return true, err
}

// Forget drops a question whose answer nobody waits for any more.
func (q *Questions) Forget(seq uint64) {
	if i, there := q.find(seq); there {
		q.open = slices.Delete(q.open, i, i+1)
	}
	delete(q.over, seq)
}

// Open is the number of questions whose answer nobody has taken.
func (q *Questions) Open() int { return len(q.open) + len(q.over) }

func (q *Questions) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(q.open, seq, func(o *question, seq uint64) int { return cmp.Compare(o.seq, seq) })
}

// answer ends the questions that both have answered: the first ones, since each guardian answers in their order.
func (q *Questions) answer() {
	for len(q.open) > 0 && q.places.have(q.open[0].seq) {
		q.end(0, nil)
	}
}

// fail notes why a question has no good answer; the first reason counts.
func (q *Questions) fail(seq uint64, why error) {
	if i, there := q.find(seq); there {
		q.end(i, why)
	}
}

func (q *Questions) end(i int, why error) {
	o := q.open[i]
	q.open = slices.Delete(q.open, i, i+1)
	q.over[o.seq] = why
	close(o.over)
}

// due gives up questions that have been open for too long, and lists those for which silent guardians must be killed now.
func (q *Questions) due(now time.Duration) (silent []uint64) {
	for _, o := range q.open {
		if o.silent || now < o.limit {
			continue
		}
		if !o.again { // after a standstill no answer is late yet
			o.again, o.limit, o.at = true, now+secondLook, max(o.at, now-AckLimit)
			continue
		}
		o.silent = true
		silent = append(silent, o.seq)
	}
	for len(q.open) > 0 && now >= q.open[0].at+giveUp {
		q.end(0, errGaveUp)
	}
	return silent
}

// next is when due may have work; 0: never.
func (q *Questions) next() (next time.Duration) {
	for _, o := range q.open {
		if !o.silent {
			next = sooner(next, o.limit)
		}
		next = sooner(next, o.at+giveUp)
	}
	return next
}
