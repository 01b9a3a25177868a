package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAReplicatedServiceIsRead(t *testing.T) {
	cfg, err := loadFile("testdata/valid/replicated.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &Replicated{
		Address: "db-1.example", Role: Command{"r"}, Position: Command{"p"}, Promote: Command{"promote", "now"},
		Follow: Command{"sh", "-c", "follow $UNDERSTUDY_ACTIVE_ADDRESS"}, Demote: Command{"demote"}, Prepare: Command{"rewind", "-D", "data"}, Reclone: Command{"basebackup"}, Attempts: 4, PositionsFrom: 2, MaxLag: 1 << 20,
		Interval: 2 * time.Second, Timeout: 3 * time.Second, StateDir: "/srv/state", Others: map[string]string{"m": "10.0.0.2"},
		SeenBy: &SeenBy{HTTP: "http://$UNDERSTUDY_ACTIVE_ADDRESS:80/${UNDERSTUDY_ACTIVE_NODE}", Quorum: QuorumAll, Failures: 2, Interval: time.Second, Timeout: 500 * time.Millisecond},
	}
	if diff := cmp.Diff(want, cfg.Services["s"].Replicated); diff != "" {
		t.Error(diff)
	}
	want = &Replicated{
		Role: Command{"r"}, Position: Command{"p"}, Promote: Command{"pr"}, Follow: Command{"f"}, Copies: Command{"c", "now"}, Attempts: 5,
		Interval: time.Second, Timeout: 10 * time.Second, StateDir: "/var/lib/understudy",
		SeenBy: &SeenBy{Exec: Command{"look"}, Quorum: QuorumMajority, Failures: 3, Interval: 5 * time.Second, Timeout: 2 * time.Second},
	}
	if diff := cmp.Diff(want, cfg.Services["t"].Replicated); diff != "" {
		t.Error(diff)
	}
	members := cfg.Services["t"].Processes // its addresses are set once it is promoted
	if len(members) != 3 || members[0].Name != MainProcess || members[1].Address.IP != "10.0.0.8/32" || members[2].Address.Device != "eth1" {
		t.Errorf("%+v", members)
	}
}

// Each node knows the addresses that the files give under nodes: for the others, and no address that is for this node, or for all.
func TestTheAddressesOfTheOtherNodesCopiesAreKnown(t *testing.T) {
	const text = `
zookeeper: {servers: [zk1]}
defaults: {replicated: {role: r, position: p, promote: p, follow: f}}
services:
  s:
    command: x
    replicated: {address: 10.0.0.9}
    nodes: {a: {replicated: {address: 10.0.0.1}}, b: {replicated: {address: db-2}}, c: {priority: 5}, d: {replicated: {interval: 2s}}}
  t:
    command: x
`
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]struct {
		address string
		others  map[string]string
	}{
		"a": {"10.0.0.1", map[string]string{"b": "db-2"}},
		"b": {"db-2", map[string]string{"a": "10.0.0.1"}},
		"c": {"10.0.0.9", map[string]string{"a": "10.0.0.1", "b": "db-2"}},
	} {
		r := Read(file, node)
		if r.Config == nil {
			t.Fatal(r.Faults)
		}
		got := r.Config.Services["s"].Replicated
		if got.Address != want.address || !maps.Equal(got.Others, want.others) {
			t.Errorf("%s: %s, %v", node, got.Address, got.Others)
		}
		if other := r.Config.Services["t"].Replicated; other.Others != nil || other.Address != "" {
			t.Errorf("%s: another service has %+v", node, other)
		}
	}
}

// What stands for the primary may be an IPv6 address, which needs brackets before a port.
func TestTheAddressOfThePrimaryIsFilledIn(t *testing.T) {
	for given, want := range map[string]string{
		"$UNDERSTUDY_ACTIVE_ADDRESS:6379": "[fd00::1]:6379", "[${UNDERSTUDY_ACTIVE_ADDRESS}]:6379": "[fd00::1]:6379", "http://$UNDERSTUDY_ACTIVE_HOST/x": "http://db-1/x",
	} {
		got := Fill(given, func(name string) string {
			return map[string]string{"UNDERSTUDY_ACTIVE_ADDRESS": "fd00::1", "UNDERSTUDY_ACTIVE_HOST": "db-1"}[name]
		})
		if got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

// Two positions of three copies are enough where two hold each write. With a fourth copy they are not.
func TestTooFewPositionsForSoManyCopiesAreDoubtful(t *testing.T) {
	for _, c := range []struct {
		given, copies int
		says          string
	}{
		{0, 9, ""}, {2, 3, ""}, {1, 2, ""}, {1, 1, ""}, {3, 2, ""}, {2, 4, "each write is on 3 copies"}, {1, 3, "write 2 otherwise"},
	} {
		r := &Replicated{PositionsFrom: c.given}
		if got := r.DoubtfulPositions(c.copies); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
