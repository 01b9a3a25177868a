package election

import (
	"errors"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/wait"
)

// minLease is the shortest that a config may have.
const minLease = 500 * time.Millisecond

// P3: a watchdog's last timeout ends with the slack after the lease, and it can be fed before.
func TestAWatchdogStrikesInTimeAndCanBeFed(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		minLease: 0, 1666 * time.Millisecond: 0, 1700 * time.Millisecond: time.Second, 3 * time.Second: time.Second, 4 * time.Second: time.Second, 20 * time.Second: 8 * time.Second,
	} {
		got := Watchdog(lease)
		if got != want {
			t.Errorf("lease %v: watchdog %v, want %v", lease, got, want)
		}
		if left := lease + AfterLease(lease) - got; got > 0 && left < 2*beatEvery(lease) {
			t.Errorf("lease %v: fed within %v of a heartbeat only", lease, left)
		}
	}
}

const leaseLength = 3 * time.Second

// aLease is backed by a write that was sent, and acknowledged, now.
func aLease(now *time.Duration) *Lease {
	l := newLease(func() time.Duration { return *now }, leaseLength)
	l.kill, l.hangUp = func(error) {}, func() {}
	l.extend(*now)
	return &l
}

// P3: neither an acknowledgement that comes after the end, when the timer is late, nor a promise.
func TestEndedLeaseIsNotRevived(t *testing.T) {
	for name, revive := range map[string]func(l *Lease, now time.Duration){
		"acknowledged": func(l *Lease, now time.Duration) { l.extend(now) },
		"promised": func(l *Lease, now time.Duration) {
			if l.ExtendByPromises(now + time.Hour) {
				t.Error("a promise came in time after the end")
			}
		},
	} {
		for _, noticed := range []bool{false, true} {
			now := time.Hour
			l := aLease(&now)
			end := l.End()
			if now = end; noticed {
				l.Expire(ErrLeaseEnding)
			}
			revive(l, now)
			if l.End() > end {
				t.Errorf("%s: it ends %v later", name, l.End()-end)
			}
			if l.extend(now); !errors.Is(l.Over(), ErrLeaseEnding) || l.End() != 0 {
				t.Errorf("%s: over by %v", name, l.Over())
			}
			if !wait.Closed(l.Ended()) {
				t.Errorf("%s: its end is not told", name)
			}
		}
	}
}

// What a stopped process or a paused machine misses is not ZooKeeper's fault.
func TestAStandstillIsNotBlamedOnZooKeeper(t *testing.T) {
	for late, stood := range map[time.Duration]bool{time.Second / 2: false, 8 * time.Second: true} {
		now := time.Hour
		l := aLease(&now)
		l.due, now = l.End(), l.End()+late
		l.extend(now)
		if err := l.Over(); !errors.Is(err, ErrLeaseEnding) || strings.Contains(err.Error(), "this supervisor stood still for 8s") != stood {
			t.Errorf("%v late: %v", late, err)
		}
	}
}

// P3: the serving has been told to end by then.
func TestAPromiseDoesNotReviveAnEndingLease(t *testing.T) {
	now := time.Hour
	l := aLease(&now)
	now = l.End() - StopEarly(leaseLength) - 1
	if l.beginEnding() || !l.ExtendByPromises(now+leaseLength) || l.End() != now+leaseLength {
		t.Error("a promise in time does not extend it")
	}
	now = l.End() - StopEarly(leaseLength)
	if !l.beginEnding() || l.ExtendByPromises(now+leaseLength) {
		t.Error("a promise that came too late extends it")
	}
}

// P3: an answer that took longer than a lease backs none, and one that was overtaken by a later one's does not shorten that.
func TestALateAcknowledgementChangesNothing(t *testing.T) {
	now := time.Hour
	l := newLease(func() time.Duration { return now }, leaseLength)
	l.kill, l.hangUp = func(error) {}, func() {}
	l.OnExtended(func(end time.Duration) {
		if end != 0 && end <= now {
			t.Errorf("guardians are told of a lease that ended %v ago", now-end)
		}
	})
	for _, c := range []struct{ sent, end time.Duration }{{now - leaseLength, 0}, {now, now + leaseLength}, {now - 1, now + leaseLength}} {
		if l.extend(c.sent); l.End() != c.end || l.Over() != nil {
			t.Errorf("sent %v ago: it ends at %v, not %v; over by %v", now-c.sent, l.End(), c.end, l.Over())
		}
	}
}
