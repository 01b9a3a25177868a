package supervisor

import (
	"strings"
	"testing"

	"understudy/supervisor/config"
	"understudy/supervisor/host"
)

// armedGuard is a guard whose watchdog may be armed.
type armedGuard struct {
	host.Guard
	armed bool
}

func (d *armedGuard) WatchdogArmed() bool { return d.armed }

// onlooker notes the watchdog that it is told of.
type onlooker struct {
	unobserved
	seen []string
	now  func() bool
}

func (o *onlooker) Watchdog(device, mode string, armed func() bool) {
	o.seen, o.now = append(o.seen, device+" "+mode), armed
}

func TestObserversLearnWhetherTheWatchdogIsArmed(t *testing.T) {
	k := &armedGuard{}
	for want, w := range map[string]*config.Watchdog{
		"": nil, "/dev/w required": {Device: "/dev/w", Mode: config.WatchdogRequired}, "/dev/w automatic": {Device: "/dev/w", Mode: config.WatchdogAutomatic},
	} {
		o := &onlooker{}
		s := &supervisor{cfg: Config{Watchdog: w, Observer: o}, guard: k}
		s.showWatchdog()
		if strings.Join(o.seen, ",") != want {
			t.Errorf("told %q, want %q", o.seen, want)
			continue
		}
		if w == nil {
			continue
		}
		before := o.now()
		k.armed = true
		if before || !o.now() {
			t.Error("it is not asked")
		}
		k.armed = false
	}
}
