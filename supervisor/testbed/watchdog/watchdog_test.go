package watchdog

import (
	"fmt"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// Where the supervisor and both guardians do nothing any more, and their child goes on.
const (
	freeze = "kill -STOP $(pidof understudy)"
	kill   = freeze + " && kill -KILL $(pidof understudy)" // none of them sees another die
)

// A machine on which nobody ends a child is reset, before its session can end, and stands by once it has booted.
func TestWatchdogResetsTheMachineBeforeItsSessionEnds(t *testing.T) {
	t.Run("all who could end the child are killed", func(t *testing.T) {
		p := newPlay(t, "required", "children=1") // the kernel kills a child with its parent, but not the child's own
		reset := p.isReset(t, func() int64 {
			p.a.ask(t, kill) // it may be reset before it answers
			return tick.Now()
		})
		if ago := since(p.last(), reset); ago > timeout/2 {
			t.Errorf("what ran ended %v before the reset: it was not the reset that ended it", ago)
		}
	})
	t.Run("the kernel panics", func(t *testing.T) {
		p := newPlay(t, "required")
		p.isReset(t, func() int64 {
			p.a.tell(t, "echo c >/proc/sysrq-trigger")
			kit.Until(t, soon, "the machine is silent", func() bool { return since(p.last(), tick.Now()) > silent })
			return p.last()
		})
	})
}

// silent is how long no sign of life has come from what has ended.
const silent = 300 * time.Millisecond

// The guardians are well, cut off, and do what they can; but a process of their tree cannot be killed.
func TestWatchdogResetsTheMachineWhereKillingIsNotEnough(t *testing.T) {
	p := newPlay(t, "required", "children=1")
	p.a.do(t, "mount -t cgroup -o freezer freezer /freezer && mkdir /freezer/ice")
	var struck int64
	reset := p.isReset(t, func() int64 {
		p.a.do(t, fmt.Sprintf("echo %d >/freezer/ice/cgroup.procs && echo FROZEN >/freezer/ice/freezer.state", p.run.Pid))
		p.a.host.CutFrom(t, p.Addrs()...)
		struck = tick.Now()
		return struck
	})
	if fed := since(struck, reset); fed < timeout {
		t.Errorf("reset after %v: the guardians did not feed the watchdog until the lease's end", fed)
	}
}

// isReset has the machine struck, and demands its reset, and that all is well after it. After what strike returns, no write is
// sent in the machine's session.
func (p *play) isReset(t *testing.T, strike func() (struck int64)) (reset int64) {
	t.Helper()
	if !p.a.armed(t) {
		t.Fatal("the watchdog is not armed while a child runs")
	}
	lock := p.Deleted(t, "services", p.Options.Service, "ActiveStandbyElectorLock")
	ended := func() bool {
		select {
		case <-lock:
			return true
		default:
			return false
		}
	}
	began := tick.Now()
	struck := strike()
	kit.Until(t, soon, "the watchdog resets the machine", func() (was bool) {
		reset, was = p.a.reset(t)
		return was
	})
	if ended() {
		t.Error("the session ended before the reset")
	}
	kit.Until(t, session+soon, "the session ends", ended)
	end := tick.Now()
	next := p.On(t, soon, "b", began)
	t.Logf("after the strike: reset %v, last sign of life %v, session ended %v, standby's child began %v",
		since(struck, reset), since(struck, p.last()), since(struck, end), since(struck, next.First))
	// The emulator's clocks are its host's, which may stand still: half of what is left until the session can end is for that.
	if late, most := since(struck, reset), (leash+session)/2; late > most {
		t.Errorf("reset %v after the last write, of at most %v, and %v on a machine that never stands still", late, most, leash)
	}
	p.a.host.Heal(t)
	p.WaitStandby(t, booted, p.Options.Service, "a")
	p.Alone(t, silent, "b")
	p.CheckOverlap(t)
	p.a.reset(t) // the only one
	return reset
}

func since(from, to int64) time.Duration { return time.Duration(to - from).Round(time.Millisecond) }

// While all is well the device is fed, and a supervisor that is stopped disarms it: the machine goes on.
func TestMachineThatIsWellIsNotReset(t *testing.T) {
	p := newPlay(t, "required")
	if !p.a.armed(t) {
		t.Fatal("the watchdog is not armed while a child runs")
	}
	notReset := func() bool { _, was := p.a.reset(t); return !was }
	kit.Throughout(t, 2*timeout, "the watchdog is fed", notReset)
	began := tick.Now()
	p.a.do(t, "kill $(cat /run/understudy.pid)")
	p.On(t, soon, "b", began)
	kit.Until(t, soon, "nothing of Understudy is left", func() bool { return p.a.do(t, "pidof understudy || echo none") == "none" })
	if p.a.armed(t) {
		t.Error("the watchdog is armed when nothing is left to feed it")
	}
	kit.Throughout(t, 3*timeout, "the watchdog is disarmed", notReset)
	p.a.do(t, "true")
	p.CheckOverlap(t)
}

// What the other tests demand is the watchdog's doing: without it, two children run.
func TestWithoutAWatchdogAChildOutlivesItsSession(t *testing.T) {
	p := newPlay(t, "off")
	if p.a.armed(t) {
		t.Fatal("a watchdog is armed that is off")
	}
	began := tick.Now()
	p.a.do(t, freeze)
	struck := tick.Now()
	next := p.On(t, session+2*grace+soon, "b", began)
	if p.last() < struck {
		t.Fatal("the machine was so slow that its lease had ended before it was struck")
	}
	kit.Until(t, soon, "both run", func() bool { return since(next.First, p.last()) > silent })
	if _, was := p.a.reset(t); was {
		t.Error("the machine was reset")
	}
}
