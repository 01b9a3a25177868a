package config

import (
	"testing"
	"time"
)

func TestAProfileGivesDefaultsThatKeysOverrule(t *testing.T) {
	const second = time.Second
	for text, want := range map[string][3]time.Duration{ // the session, grace of a service, grace of one with a key of its own
		"zookeeper: {servers: [zk1], profile: fast}":                                        {2 * second, second / 2, 4 * second},
		"zookeeper: {servers: [zk1], profile: normal}":                                      {6 * second, 2 * second, 4 * second},
		"zookeeper: {servers: [zk1], profile: wide}":                                        {15 * second, 3 * second, 4 * second},
		"zookeeper: {servers: [zk1], session_timeout: 9s, profile: wide}":                   {9 * second, 3 * second, 4 * second},
		"defaults: {grace_delay: 1s}\nzookeeper: {servers: [zk1], profile: fast}":           {2 * second, second, 4 * second},
		"zookeeper: {servers: [zk1]}":                                                       {6 * second, 2 * second, 4 * second},
		"zookeeper: {servers: [zk1], profile: fast, min_session_timeout: 2s}\ndefaults: {}": {2 * second, second / 2, 4 * second},
	} {
		r := newLoader("u.yaml", aboard()).load([]byte("node: n\n" + text + "\ninclude: [conf.d/one.yaml]\nservices: {b: {command: x, grace_delay: 4s}}\n"))
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		c := r.Config
		if got := [3]time.Duration{c.ZooKeeper.SessionTimeout, c.Services["one"].GraceDelay, c.Services["b"].GraceDelay}; got != want {
			t.Errorf("%s: %v, not %v", text, got, want)
		}
		checkRoundTrip(t, c)
	}
}
