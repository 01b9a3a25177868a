package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lease says how long a session's programs may run. This process treats the lease's end as the session's.
type Lease struct {
	now    func() time.Duration
	kill   func(why error) // ends the serving
	hangUp func()          // ends the connection, which may take a moment
	ended  chan struct{}   // closed at the end
	length time.Duration   // the same for as long as the session stands

	mu       sync.Mutex    // guards the fields below; now is not called under it: a simulated clock may wait
	on       int64         // the czxid of nodes/<node>: only writes to that very znode extend the lease
	acked    time.Duration // when the newest acknowledged one was sent
	backed   time.Duration // when the lease ends that ZooKeeper backs; 0: there is none
	promised time.Duration // how long the others' promises last; 0: there are none
	ending   bool          // serve was told to end
	due      time.Duration // when watch looks next; 0: it has not begun
	over     error         // why it has ended
	early    bool          // ZooKeeper had forgotten the session by then, although it backed the lease
	extended func(end time.Duration)
}

func newLease(now func() time.Duration, length time.Duration) Lease {
	return Lease{now: now, ended: make(chan struct{}), length: length}
}

// resume continues the lease of another image of this process.
func (l *Lease) resume(on int64, end time.Duration) {
	l.on, l.backed, l.acked = on, end, end-l.length
}

// LeaseLength is how long programs may run after the sending of the last acknowledged heartbeat.
func (l *Lease) LeaseLength() time.Duration { return l.length }

// End is when the lease ends, on the clock of Config.Now.
func (l *Lease) End() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end()
}

func (l *Lease) end() time.Duration { return max(l.backed, l.promised) }

// Backed is when the lease ends that ZooKeeper itself backs.
func (l *Lease) Backed() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.backed
}

// Acked is when the newest acknowledged write was sent.
func (l *Lease) Acked() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// rests is the czxid of the znode that the lease rests on.
func (l *Lease) rests() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.on
}

// begin is extend for the first write to the znode that the lease rests on from then on.
func (l *Lease) begin(on int64, sent time.Duration) {
	l.mu.Lock()
	l.on = on
	l.mu.Unlock()
	l.extend(sent)
}

// left describes the lease to another image of this process.
func (l *Lease) left() (backed time.Duration, over error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.backed, l.over
}

// Over returns why the session is over, or nil.
func (l *Lease) Over() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// forgotten reports whether ZooKeeper had no such session any more while it backed the lease.
func (l *Lease) forgotten() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.early
}

// Ended is closed when the lease has ended: no program that needs it may be alive.
func (l *Lease) Ended() <-chan struct{} { return l.ended }

// Expire ends the lease at once: the session cannot be trusted any more.
func (l *Lease) Expire(why error) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(why, now)
}

func (l *Lease) expire(why error, now time.Duration) {
	if l.over != nil {
		return
	}
	if late := now - l.due; l.due > 0 && late > l.length/3 && errors.Is(why, ErrLeaseEnding) { // it is not ZooKeeper
		why = fmt.Errorf("this supervisor stood still for %v, as a process that was stopped or a paused machine does: %w",
			late.Round(time.Second/10), why)
	}
	l.over, l.early = why, why == ErrExpired && now < l.backed //nolint:errorlint // another session for ours is no loss of data
	l.backed, l.promised = 0, 0
	l.kill(why)
	close(l.ended)
	l.hangUp()
}

// OnExtended calls f with each end that ZooKeeper backs, and with the present one at once.
func (l *Lease) OnExtended(f func(end time.Duration)) {
	l.mu.Lock()
	l.extended = f
	end := l.backed
	l.mu.Unlock()
	f(end)
}

// extend prolongs the lease: a write sent at that time was acknowledged.
func (l *Lease) extend(sent time.Duration) {
	now := l.now()
	l.mu.Lock()
	if l.backed > 0 && now >= l.end() {
		l.expire(ErrLeaseEnding, now) // P3: an ended lease is never revived
	}
	end, extended := sent+l.length, l.extended
	if l.over != nil || end <= l.backed || end <= now {
		l.mu.Unlock()
		return
	}
	l.backed, l.acked = end, sent
	l.mu.Unlock()
	if extended != nil {
		extended(end)
	}
}

// ExtendByPromises extends the lease until then without acknowledged writes: the other nodes have promised not to start its
// services. It reports false if that comes too late. P3: a lease that has ended, or is ending, is never revived.
func (l *Lease) ExtendByPromises(until time.Duration) bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil || l.ending || now >= l.end() {
		return false
	}
	l.promised = max(l.promised, until)
	return true
}

// watch calls ending shortly before the lease ends, and ends the lease when its time is up.
func (l *Lease) watch(ctx context.Context, ending func(left time.Duration)) {
	warned := false
	for {
		now := l.now()
		left := l.End() - now
		if left <= 0 {
			l.Expire(ErrLeaseEnding) // P3
			return
		}
		next := left
		if early := left - StopEarly(l.length); early > 0 {
			next = early
		} else if !warned {
			if !l.beginEnding() {
				continue // a promise has just extended it
			}
			warned = true
			ending(left)
		}
		l.mu.Lock()
		l.due = now + next
		l.mu.Unlock()
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-l.ended:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// beginEnding notes that serve was told to end: from then on no promise revives the lease.
func (l *Lease) beginEnding() bool {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = l.end()-now <= StopEarly(l.length)
	return l.ending
}
