package config

import (
	"testing"
	"time"
)

func TestAProfileGivesDefaultsThatKeysOverrule(t *testing.T) {
	const second = time.Second
	for text, want := range map[string][3]time.Duration{ // the lease, grace of a service, grace of one with a key of its own
		"zookeeper: {servers: [zk1], profile: fast}":                              {second, second / 2, 4 * second},
		"zookeeper: {servers: [zk1], profile: normal}":                            {3 * second, 2 * second, 4 * second},
		"zookeeper: {servers: [zk1], profile: wide}":                              {10 * second, 3 * second, 4 * second},
		"zookeeper: {servers: [zk1], lease: 4.5s, profile: wide}":                 {9 * second / 2, 3 * second, 4 * second},
		"defaults: {grace_delay: 1s}\nzookeeper: {servers: [zk1], profile: fast}": {second, second, 4 * second},
		"zookeeper: {servers: [zk1]}":                                             {3 * second, 2 * second, 4 * second},
	} {
		r := newLoader("u.yaml", aboard()).load([]byte("node: n\n" + text + "\ninclude: [conf.d/one.yaml]\nservices: {b: {command: x, grace_delay: 4s}}\n"))
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		c := r.Config
		if got := [3]time.Duration{c.ZooKeeper.Lease, c.Services["one"].GraceDelay, c.Services["b"].GraceDelay}; got != want {
			t.Errorf("%s: %v, not %v", text, got, want)
		}
		checkRoundTrip(t, c)
	}
}
