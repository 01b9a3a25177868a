package guard

import (
	"errors"
	"time"
)

// Deeds are what a guardian did because its supervisor was gone.
type Deeds struct {
	Killed    []string      // names of trees in which something ran, and which are proved dead
	Alive     []string      // names of those that are not
	Why       string        // why the newest lease ended
	Undone    []string      // names of trees whose effects it has undone, itself or the other guardian, and whose record is gone
	Recorded  []string      // of those whose record may still be there
	Left      []string      // of those whose effects are left
	NotUndone error         // why
	Took      time.Duration // from the order to the last proof
	Sessions  int           // that it had to end
	Closed    int           // that are closed
	Err       error         // why one is not
	first     time.Duration // the first order
}

// Deeds are what there is to tell once Turn has said that it is over. Of two guardians that do the same, one tells it: tells is false
// for the second, unless the first one was gone before.
func (g *Guardian) Deeds() (d Deeds, tells bool) {
	d = g.deeds
	return d, d.Sessions > 0 && (g.cfg.Index == 0 || g.alone > 0 && g.alone <= d.first)
}

// add notes what was done with a lease.
func (d *Deeds) add(l *lease) {
	if d.Sessions++; d.Sessions == 1 || l.endedAt < d.first {
		d.first = l.endedAt
	}
	d.Why = l.why
	if l.closed && l.refused == nil {
		d.Closed++
	} else if l.refused != nil {
		d.Err = l.refused
	}
	for _, t := range l.trees {
		switch {
		case t.effects == nil:
		case t.undone && l.refused != nil:
			d.Recorded = append(d.Recorded, t.name)
		case t.undone:
			d.Undone = append(d.Undone, t.name)
		default:
			d.Left, d.NotUndone = append(d.Left, t.name), t.whyLeft()
		}
		switch {
		case !t.struck:
		case t.dead:
			d.Killed = append(d.Killed, t.name)
			d.Took = max(d.Took, t.diedAt-l.endedAt)
		default:
			d.Alive = append(d.Alive, t.name)
		}
	}
}

var (
	errNotBySupervisor = errors.New("the supervisor could not before it ended, and its log gives the cause")
	errNoAttempt       = errors.New("no attempt has come to an end")
)

// whyLeft is why effects are not undone.
func (t *tree) whyLeft() error {
	switch {
	case t.err != nil:
		return t.err
	case t.left:
		return errNotBySupervisor
	}
	return errNoAttempt
}
