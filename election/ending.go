package election

import (
	"cmp"
	"time"
)

// Ending bounds when the last program of an activation died, which did not write that itself. nil: no bound.
type Ending struct {
	Min *time.Time `json:"min,omitempty"`
	Max *time.Time `json:"max,omitempty"`

	of int64 // the activation, by its token; 0: it is not known which one
}

// EndedBy is an ending at that time or before.
func EndedBy(t time.Time) Ending { return Ending{Max: utc(t)} }

// beside is what is left of these bounds for an activation that may be another one than they are of, and after which next came: it died
// before next started, if that was not for an operator to say.
func (e Ending) beside(old, next Activation) Ending {
	if e.of != 0 && e.of != old.Token {
		e = Ending{}
	}
	if s := next.Started; s != nil && next.Fenced.Fenced() && !next.Fenced.Confirmed() &&
		(e.Max == nil || !next.Fenced.Delayed() || e.Max.After(*s)) {
		e.Max = s
	}
	return e
}

// since is what is left of the bounds where the programs were down at the end: the last one died then, or after a start in vain.
func (e Ending) since(down *time.Time) Ending {
	if down != nil && (e.Min == nil || down.Before(*e.Min)) {
		e.Min = down
	}
	return e
}

func (e Ending) known() bool { return e.Min != nil && e.Max != nil && e.Min.Equal(*e.Max) }

// note is the data of a service's history folder: the ending of the activation with this token, from the process that gave its lock
// back in place of a dead supervisor.
type note struct {
	Token int64 `json:"token"`
	Ending
}

// lockEnd is a candidate's knowledge of how the newest lock went.
type lockEnd struct {
	token int64     // of its activation
	seen  time.Time // it existed
	gone  time.Time // it did not; zero: it may still exist
}

// note notes a look at the lock between two points in time.
func (d *lockEnd) note(lock view, began, ended time.Time) {
	switch {
	case lock.exists:
		holder, _ := decode[Lock](lock.data) // a lock that says nothing is a lock
		*d = lockEnd{token: cmp.Or(holder.Token, lock.stat.Czxid), seen: began}
	case d.gone.IsZero():
		d.gone = ended
	}
}

// went notes that a watch has just told of the lock's deletion. After a reconnect it tells of a deletion at any time since the last look.
func (d *lockEnd) went(connected time.Time) {
	d.gone = time.Now()
	if !d.seen.Before(connected) {
		d.seen = d.gone
	}
}

func utc(t time.Time) *time.Time {
	t = t.UTC()
	return &t
}
