package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// unheard is when an order to stop that has had no effect is given again. That is late enough for a machine that is busy, and early
// enough for a session that nobody closes to end later.
const unheard = kit.Calm / 8

// The exec of an upgrade takes some 10 ms, and for a few of these Go hears no signal. An order to stop that comes then ends the
// supervisor in order or at once, or is lost and given again. Whichever it is, the standby takes over as after a kill -9: at no time
// do two programs run, and none waits for the end of a session.
func TestAnOrderToStopHandsOverAtEveryMomentOfAnUpgrade(t *testing.T) {
	good := kit.UnderstudyBinary(t)
	for name, c := range map[string]struct {
		next    string // what the supervisor is to become
		moments int
		apart   time.Duration
	}{
		"the exec works": {good, 32, 500 * time.Microsecond},
		"the exec fails": { // what answers well may be gone a moment later
			kit.Script(t, fmt.Sprintf(`echo garbage >"$0~"; chmod +x "$0~"; mv "$0~" "$0"; exec %s "$@"`, good)), 8, 500 * time.Microsecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, b := newPlay(t, stage(t)), kit.Install(t)
			p.Options.Binary = string(b)
			given, again, atOnce := 0, 0, 0
			gaps, _ := p.Relay(t, c.moments, p.Lab.Host(t, "a"), p.Lab.Host(t, "b"), func(active *kit.Supervisor) {
				b.Replace(t, c.next)
				becomes(t, active)
				<-time.After(time.Duration(given) * c.apart)
				given++
				active.Signal(syscall.SIGTERM)
				if !kit.Reached(unheard, func() bool { return !active.Running() }) {
					again++
					active.Signal(syscall.SIGTERM)
				}
				switch code := active.ExitCode(t, soon); code {
				case 0:
				case -1: // by the signal
					atOnce++
				default:
					t.Errorf("order %d: the supervisor ended with %d", given, code)
				}
				b.Replace(t, good)
			})
			t.Logf("of %d orders %d ended the supervisor at once, %d had to be given again; gap: %s", given, atOnce, again, kit.Summary(gaps))
			if worst := kit.Quantile(gaps, 1); worst > kit.Calm/2 {
				t.Errorf("nobody ran for %v: a session had to end first", worst)
			}
		})
	}
}

// No program ends because its supervisor is told to read the config, or to upgrade once more, in the middle of an upgrade; and the
// supervisor hears of its end as ever.
func TestOtherSignalsAreHarmlessAtEveryMomentOfAnUpgrade(t *testing.T) {
	p := newPlay(t, stage(t))
	s := p.serveAlone(t, kit.Command(p.Child()))
	run := p.On(t, soon, "a", 0)
	goneOn := func() int { return strings.Count(s.Log(), "continuing after the upgrade") }
	for i := range 24 {
		before := goneOn()
		becomes(t, s)
		<-time.After(time.Duration(i) * 700 * time.Microsecond)
		s.Signal([]syscall.Signal{syscall.SIGHUP, syscall.SIGUSR2}[i%2])
		kit.Until(t, soon, "it goes on", func() bool { return goneOn() > before })
		p.Untouched(t, run)
	}
	if !strings.Contains(s.Log(), " from=dev to=dev ") {
		t.Error("the log does not name the versions")
	}
	s.Stop(t)
}
