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
	changed chan struct{}
}

func newQuestions(p *places) *Questions {
	return &Questions{places: p, last: 1, changed: make(chan struct{})} // the setup has the first number
}

type question struct {
	seq    uint64
	at     time.Duration
	silent bool // the guardians that have not answered were killed
	err    error
}

func (q *Questions) number() uint64 {
	q.last++
	return q.last
}

// Changed is closed at the next change that a goroutine may wait for.
func (q *Questions) Changed() <-chan struct{} { return q.changed }

func (q *Questions) news() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *Questions) broadcast(m *Message) { q.places.broadcast(m) }

// ask broadcasts a question that both have to answer.
func (q *Questions) ask(now time.Duration, m *Message) (seq uint64) {
	m.Seq = q.number()
	q.open = append(q.open, &question{seq: m.Seq, at: now})
	q.broadcast(m)
	return m.Seq
}

// Rouse asks both guardians to show that they are awake.
func (q *Questions) Rouse(now time.Duration) (seq uint64) { return q.ask(now, &Message{Op: OpPing}) }

// Answered reports whether both guardians have answered a question, or why not. Callers repeat it until it is done, or call Forget.
func (q *Questions) Answered(seq uint64) (done bool, err error) {
	i, there := q.find(seq)
	if there {
		err = q.open[i].err
	}
	if err == nil && !q.places.have(seq) {
		return false, nil
	}
	q.Forget(seq)
	return true, err
}

// Forget drops a question whose answer nobody waits for any more.
func (q *Questions) Forget(seq uint64) {
	if i, there := q.find(seq); there {
		q.open = slices.Delete(q.open, i, i+1)
	}
}

// Open is the number of questions whose answer nobody has taken.
func (q *Questions) Open() int { return len(q.open) }

func (q *Questions) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(q.open, seq, func(o *question, seq uint64) int { return cmp.Compare(o.seq, seq) })
}

// fail notes why a question has no good answer; the first reason counts.
func (q *Questions) fail(seq uint64, why error) {
	if i, there := q.find(seq); there && q.open[i].err == nil {
		q.open[i].err = why
	}
}

// due gives up questions that have been open for too long, and lists those for which silent guardians must be killed now.
func (q *Questions) due(now time.Duration) (silent []uint64, gaveUp bool) {
	for _, o := range q.open {
		switch {
		case now >= o.at+giveUp && o.err == nil:
			o.err, gaveUp = errGaveUp, true
		case now >= o.at+AckLimit && !o.silent:
			o.silent = true
			silent = append(silent, o.seq)
		}
	}
	return silent, gaveUp
}

// next is when due may have work; 0: never.
func (q *Questions) next() (next time.Duration) {
	for _, o := range q.open {
		switch {
		case o.err != nil:
		case o.silent:
			next = sooner(next, o.at+giveUp)
		default:
			next = sooner(next, o.at+AckLimit)
		}
	}
	return next
}
