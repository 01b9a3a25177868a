package programs

import (
	"slices"
	"strconv"
	"testing"

	"understudy/supervisor/testbed/kit"
)

// An upgrade on both nodes restarts no program, neither that which works nor that which stands by, and moves nothing. Each of them is what
// it was for the next image: it is demoted and promoted as ever, and ends with its supervisor.
func TestAnUpgradeLeavesWarmProgramsAlone(t *testing.T) {
	for _, example := range []string{"warm-http", "warm-signal"} {
		t.Run(example, func(t *testing.T) {
			w := newStanding(t, example, 0)
			run := func() []int { return w.programs(w.a, w.b) }
			before := run()
			lock, _ := w.Lock(w.service)
			for range 2 {
				for _, h := range []*kit.Host{w.b, w.a} {
					r := h.Ask(t, "reexec", "--pid", strconv.Itoa(w.sups[h].Pid), "--binary", kit.UnderstudyBinary(t))
					if r.Code != 0 {
						t.Fatalf("reexec on %s ended with %d: %s%s", h.Name, r.Code, r.Out, r.Err)
					}
				}
			}
			w.role(t, w.a, "active")
			w.role(t, w.b, "standby")
			if now := run(); len(now) != 2 || !slices.Equal(now, before) {
				t.Errorf("the programs were %v, and are %v", before, now)
			}
			if now, _ := w.Lock(w.service); now.Czxid != lock.Czxid || now.Owner != lock.Owner {
				t.Errorf("the lock was %+v, and is %+v", lock, now)
			}
			w.v.Served(t, w.a)
			w.order(t, "switchover", w.service, "--to", "b")
			w.v.Served(t, w.b)
			w.role(t, w.a, "standby")
			demoted := slices.Equal(run(), before)
			if demoted != (example == "warm-http") {
				t.Errorf("demoted %v: the programs were %v, and are %v", demoted, before, run())
			}
			w.sups[w.b].Kill9()
			w.v.Served(t, w.a)
			kit.Until(t, soon, "the killed supervisor's program is dead", func() bool { return len(w.programs(w.b)) == 0 })
		})
	}
}
