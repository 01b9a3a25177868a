package config

import (
	"os"
	"path/filepath"
	"strings"
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
		"include: [more/*.yaml]\nzookeeper: {profile: fast, servers: [zk1]}":                {2 * second, second / 2, 4 * second},
		"zookeeper: {servers: [zk1], profile: fast, min_session_timeout: 2s}\ndefaults: {}": {2 * second, second / 2, 4 * second},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "u.yaml")
		services := "\nservices:\n  a: {command: sleep 1}\n  b: {command: sleep 1, grace_delay: 4s}\n"
		if strings.Contains(text, "include") {
			if err := os.Mkdir(filepath.Join(dir, "more"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "more", "s.yaml"), []byte(services), 0o600); err != nil {
				t.Fatal(err)
			}
			services = "\n"
		}
		if err := os.WriteFile(file, []byte("node: n\n"+text+services), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := loadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := [3]time.Duration{c.ZooKeeper.SessionTimeout, c.Services["a"].GraceDelay, c.Services["b"].GraceDelay}; got != want {
			t.Errorf("%s: %v, not %v", text, got, want)
		}
		written, err := Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, written, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := loadFile(file)
		if err != nil || again.Services["a"].GraceDelay != want[1] || again.ZooKeeper.SessionTimeout != want[0] {
			t.Errorf("%s: read again: %+v, %v", text, again, err)
		}
	}
}
