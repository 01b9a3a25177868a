package config

import (
	"os"
	"slices"
	"strings"
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

// The list is written down where operators look for it.
func TestKeysThatNeedARestartAreListed(t *testing.T) {
	first, now := Default(), Default()
	now.Node, now.ZooKeeper.Root, now.HTTP.Listen, now.Fencing.Agent, now.Watchdog.Mode, now.Log.Format = "x", "/x", ":1", &Agent{}, WatchdogRequired, LogJSON
	now.Notify = &Notify{}
	keys := first.NeedsRestart(now)
	if len(keys) != 7 {
		t.Fatalf("%q", keys)
	}
	for _, file := range []string{"../../docs/config.md", "../../packaging/etc/understudy.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range append(keys, "contain:") {
			if name := strings.TrimSuffix(key, ":"); !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("%s does not list %s", file, name)
			}
		}
	}
}
