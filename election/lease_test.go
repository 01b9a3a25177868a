package election

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestLeaseArithmetic(t *testing.T) {
	for _, c := range []struct{ session, lease time.Duration }{
		{6 * time.Second, 3300 * time.Millisecond},
		{4 * time.Second, 2200 * time.Millisecond},
		{12 * time.Second, 6600 * time.Millisecond},
	} {
		if got := LeaseLength(c.session).Round(time.Millisecond); got != c.lease {
			t.Errorf("session %v: lease %v, want %v", c.session, got, c.lease)
		}
	}
}

// P3: what leaseSlack counts with in the worst case, a watchdog's last timeout keeps to, and it can be fed before.
func TestWatchdogFiresBeforeTheSessionCanEnd(t *testing.T) {
	for session, want := range map[time.Duration]time.Duration{
		MinTimeout: 0, 2999 * time.Millisecond: 0, 3 * time.Second: time.Second, 6 * time.Second: 2 * time.Second, 40 * time.Second: 13 * time.Second,
	} {
		got := Watchdog(session)
		if got != want {
			t.Errorf("session %v: watchdog %v, want %v", session, got, want)
		}
		earliest := session - 2*beatEvery(session) - session/4
		if end := LeaseLength(session) + AfterLease(session); end > earliest+time.Microsecond {
			t.Errorf("session %v: it can end %v after a write was sent, and is counted on for %v", session, earliest, end)
		}
		if left := earliest - got; got > 0 && left < 3*beatEvery(session)-time.Microsecond {
			t.Errorf("session %v: fed within %v of a heartbeat only", session, left)
		}
	}
}

const aSession = 6 * time.Second

// aLease is backed by a write that was sent, and acknowledged, now.
func aLease(now *time.Duration) *Lease {
	l := newLease(func() time.Duration { return *now }, aSession)
	l.kill, l.hangUp = func(error) {}, func() {}
	l.grant(aSession, aSession, *now)
	l.extend(*now)
	return &l
}

// P3: neither an acknowledgement that comes after the end, when the timer is late, nor a promise, nor another grant.
func TestEndedLeaseIsNotRevived(t *testing.T) {
	for name, revive := range map[string]func(l *Lease, now time.Duration){
		"acknowledged": func(l *Lease, now time.Duration) { l.extend(now) },
		"promised": func(l *Lease, now time.Duration) {
			if l.ExtendByPromises(now + time.Hour) {
				t.Error("a promise came in time after the end")
			}
		},
		"granted": func(l *Lease, now time.Duration) { l.grant(2*aSession, 2*aSession, now) },
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
			<-l.Ended()
		}
	}
}

// P3: the serving has been told to end by then.
func TestAPromiseDoesNotReviveAnEndingLease(t *testing.T) {
	now := time.Hour
	l := aLease(&now)
	now = l.End() - StopEarly(aSession) - 1
	if l.beginEnding() || !l.ExtendByPromises(now+aSession) || l.End() != now+aSession {
		t.Error("a promise in time does not extend it")
	}
	now = l.End() - StopEarly(aSession)
	if !l.beginEnding() || l.ExtendByPromises(now+aSession) {
		t.Error("a promise that came too late extends it")
	}
}

// P3: of two grants the shorter one counts, from the sending of the request for it.
func TestAGrantOnlyShortensALease(t *testing.T) {
	now := time.Hour
	l := aLease(&now)
	end, told := l.End(), 0
	l.OnShortened(func(context.Context) error { told++; return nil })
	if _, shorter := l.grant(2*aSession, 2*aSession, now); shorter || l.End() != end || l.Timeout() != aSession || l.Longest() != 2*aSession {
		t.Errorf("after a longer grant: %v, for %v", l.Timeout(), l.End()-now)
	}
	was, shorter := l.grant(aSession/2, aSession/2, now-time.Second)
	if was != aSession || !shorter || l.Timeout() != aSession/2 || l.End() != now-time.Second+LeaseLength(aSession/2) {
		t.Errorf("after a shorter grant: %v, for %v", l.Timeout(), l.End()-now)
	}
	if err := l.shortened(t.Context()); err != nil || told != 1 {
		t.Errorf("told %d times: %v", told, err)
	}
}
