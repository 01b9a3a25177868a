package config

import (
	"slices"
	"testing"
)

func TestWhatTheNodeIsMadeOfNeedsARestart(t *testing.T) {
	first, now := Default(), Default()
	now.HTTP.Listen = ":1"
	now.Watchdog.Mode = WatchdogRequired
	if got := first.NeedsRestart(now); !slices.Equal(got, []string{"http:", "watchdog:"}) {
		t.Errorf("%q", got)
	}
}

// One supervisor holds all that it runs in one way: a service that wants another must not be thought to have it.
func TestAServiceThatIsToBeHeldOtherwiseNeedsARestart(t *testing.T) {
	wants := func(all ...Contain) *Config {
		c := Default()
		c.Services = map[string]Service{}
		for i, contain := range all {
			s := DefaultService("true")
			s.Contain = contain
			c.Services[string(rune('a'+i))] = s
		}
		return c
	}
	const auto, strict, cgroup, pidns = ContainAuto, ContainStrict, ContainCgroup, ContainPidns
	for _, c := range []struct {
		first, now *Config
		want       []string
	}{
		{wants(auto), wants(auto, pidns), []string{"services.b.contain:"}},
		{wants(auto), wants(auto, strict), []string{"services.b.contain:"}},
		{wants(pidns), wants(pidns, pidns), nil},
		{wants(auto, pidns), wants(pidns, pidns), []string{"services.a.contain:"}},
		{wants(cgroup), wants(cgroup, auto, strict), nil},
	} {
		if got := c.first.NeedsRestart(c.now); !slices.Equal(got, c.want) {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}
