package guard

import (
	"cmp"
	"slices"
	"time"
)

// questions are the open questions to both guardians.
type questions struct {
	last uint64      // the newest number
	open []*question // in the order of their numbers
}

type question struct {
	seq    uint64
	at     time.Duration
	silent bool // the guardians that have not answered were killed
	err    error
}

func (q *questions) number() uint64 {
	q.last++
	return q.last
}

func (q *questions) ask(now time.Duration) (seq uint64) {
	seq = q.number()
	q.open = append(q.open, &question{seq: seq, at: now})
	return seq
}

func (q *questions) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(q.open, seq, func(o *question, seq uint64) int { return cmp.Compare(o.seq, seq) })
}

// fail notes why a question has no good answer; the first reason counts.
func (q *questions) fail(seq uint64, why error) {
	if i, there := q.find(seq); there && q.open[i].err == nil {
		q.open[i].err = why
	}
}

// failed is the reason; nil: the question has not failed.
func (q *questions) failed(seq uint64) error {
	if i, there := q.find(seq); there {
		return q.open[i].err
	}
	return nil
}

func (q *questions) forget(seq uint64) {
	if i, there := q.find(seq); there {
		q.open = slices.Delete(q.open, i, i+1)
	}
}

// due gives up questions that have been open for too long, and lists those for which silent guardians must be killed now.
func (q *questions) due(now time.Duration) (silent []uint64, gaveUp bool) {
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
func (q *questions) next() (next time.Duration) {
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
