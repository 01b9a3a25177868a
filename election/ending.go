package election

import (
	"cmp"
	"context"
	"time"
)

// Ending bounds the last proof that the programs of an activation ran, which did not write its own end. nil: no bound.
type Ending struct {
	Min *time.Time `json:"min,omitempty"`
	Max *time.Time `json:"max,omitempty"`
}

// exactly is an ending that is known.
func exactly(t time.Time) Ending {
	t = t.UTC()
	return Ending{&t, &t}
}

func (e Ending) known() bool { return e.Min != nil && e.Max != nil && e.Min.Equal(*e.Max) }

// note is the data of a service's history folder: the ending of the activation with this token, from the process that gave its lock
// back in place of a dead supervisor.
type note struct {
	Token int64 `json:"token"`
	Ending
}

// usualTick is ZooKeeper's default tickTime. No server says its own.
const usualTick = 2 * time.Second

// departure is a candidate's knowledge of how the newest lock went.
type departure struct {
	token int64     // of its activation
	seen  time.Time // it existed
	gone  time.Time // it did not; zero: it may still exist
}

// note notes a look at the lock between two points in time.
func (d *departure) note(lock view, began, ended time.Time) {
	switch {
	case lock.exists:
		holder, _ := decode[Lock](lock.data) // a lock that says nothing is a lock
		*d = departure{token: cmp.Or(holder.Token, lock.stat.Czxid), seen: began}
	case d.gone.IsZero():
		d.gone = ended
	}
}

// went notes that a watch has just told of the lock's deletion. After a reconnect it tells of a deletion at any time since the last look.
func (d *departure) went(connected time.Time) {
	d.gone = time.Now()
	if !d.seen.Before(connected) {
		d.seen = d.gone
	}
}

// WatchLock notes how the lock goes, until ctx or the session ends: for a candidate that may not take it now.
func (c *Candidate) WatchLock(ctx context.Context) error {
	for {
		lock, err := outcome(ctx, c.s.client, func() (view, error) { return c.taking.getLock(ctx) })
		if err != nil {
			return err
		}
		if err := c.s.await(ctx, lock.changed); err != nil {
			return err
		}
	}
}

// PreviousEnding bounds when the programs of the previous active ran last, by how its lock went. previous is what its breadcrumb said, if
// it left one. A server ends a session that was silent for its timeout, rounded up to the next tick. The last sign of life is a
// heartbeat, of which there are twelve in a timeout.
func (c *Claim) PreviousEnding(previous *BreadCrumb) Ending {
	d := c.left
	if d.gone.IsZero() {
		d.gone = c.Since
	}
	if previous == nil { // dead before the lock was given back
		return Ending{Max: utc(d.gone)}
	}
	if c.previousLives { // its lock was deleted by hand
		return Ending{}
	}
	silent := time.Duration(previous.SessionMs) * time.Millisecond
	end := Ending{Max: utc(d.gone.Add(-silent))}
	// A new leader counts each session's silence from its own beginning, and its servers' clients have to connect again.
	if first := d.seen.Add(-silent - min(usualTick, silent/2)); d.token == c.PreviousToken && c.s.connected().Before(first) {
		end.Min = utc(first)
	}
	return end
}

func utc(t time.Time) *time.Time {
	t = t.UTC()
	return &t
}
