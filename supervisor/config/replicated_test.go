package config

import (
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
		Interval: 2 * time.Second, Timeout: 3 * time.Second, StateDir: "/srv/state",
		SeenBy: &SeenBy{HTTP: "http://$UNDERSTUDY_ACTIVE_ADDRESS:80/${UNDERSTUDY_ACTIVE_NODE}", Quorum: QuorumAll, Failures: 2, Interval: time.Second, Timeout: 500 * time.Millisecond},
	}
	if diff := cmp.Diff(want, cfg.Services["s"].Replicated); diff != "" {
		t.Error(diff)
	}
	want = &Replicated{
		Role: Command{"r"}, Position: Command{"p"}, Promote: Command{"pr"}, Follow: Command{"f"}, Attempts: 5,
		Interval: time.Second, Timeout: 10 * time.Second, StateDir: "/var/lib/understudy",
		SeenBy: &SeenBy{Exec: Command{"look"}, Quorum: QuorumMajority, Failures: 3, Interval: 5 * time.Second, Timeout: 2 * time.Second},
	}
	if diff := cmp.Diff(want, cfg.Services["t"].Replicated); diff != "" {
		t.Error(diff)
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
