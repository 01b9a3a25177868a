package config

import (
	"errors"
	"strings"
	"testing"
)

const head = "node: n\nzookeeper: {servers: [zk1]}\n"

func TestManyFaultsEnd(t *testing.T) {
	_, err := load(head + "services:\n" + strings.Repeat("  s: {}\n", 5000))
	var faults Faults
	if !errors.As(err, &faults) || len(faults) < 1000 || len(faults) > 6000 {
		t.Errorf("%d faults", len(faults))
	}
}

func TestFlagsAreValidatedByKey(t *testing.T) {
	cfg := Default()
	s := DefaultService()
	s.Restart.Policy = "sometimes"
	cfg.Services["a b"] = s
	err := cfg.Validate()
	want := `node: a name must not be empty
services."a b": "a b" is not a name: letters, digits and . _ - @ : are allowed
services."a b".command: missing: say which program to run
services."a b".restart.policy: "sometimes" must be on-failure, always or never
zookeeper.servers: missing: list the ensemble, as in ["zk1:2181", "zk2:2181", "zk3:2181"]`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	s = DefaultService("x")

	cfg = Default()
	cfg.Node, cfg.ZooKeeper.Servers, cfg.Services = "n", []ServerAddress{"a:1"}, map[string]Service{"s": s}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}
