package config

import "reflect"

// NeedsRestart lists the keys of a changed config, each with a colon, that a supervisor which began with c cannot take up.
func (c *Config) NeedsRestart(now *Config) (keys []string) {
	for _, key := range []struct {
		name    string // docs/config.md and the packaged config list them
		changed bool
	}{
		{"node", c.Node != now.Node},
		{"zookeeper", !reflect.DeepEqual(c.ZooKeeper, now.ZooKeeper)},
		{"http", !reflect.DeepEqual(c.HTTP, now.HTTP)},
		{"notify", !reflect.DeepEqual(c.Notify, now.Notify)},
		{"fencing", !reflect.DeepEqual(c.Fencing, now.Fencing)},
		{"watchdog", c.Watchdog != now.Watchdog},
		{"log.format", c.Log.Format != now.Log.Format},
	} {
		if key.changed {
			keys = append(keys, key.name+":")
		}
	}
	held := ContainAuto // how this process holds all that it runs
	for _, name := range c.ServiceNames() {
		if s := c.Services[name].Contain; s != ContainAuto && (held == ContainAuto || held == ContainStrict) {
			held = s
		}
	}
	for _, name := range now.ServiceNames() {
		wanted := now.Services[name].Contain
		was, there := c.Services[name]
		suits := wanted == ContainAuto || wanted == held || wanted == ContainStrict && held != ContainAuto
		if there && was.Contain != wanted || !there && !suits {
			keys = append(keys, "services."+name+".contain:")
		}
	}
	return keys
}
