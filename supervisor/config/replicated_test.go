package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAReplicatedServiceIsRead(t *testing.T) {
	cfg, err := LoadFile("testdata/valid/replicated.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &Replicated{
		Address: "db-1.example", Role: Command{"r"}, Position: Command{"p"}, Promote: Command{"promote", "now"},
		Follow: Command{"sh", "-c", "follow $UNDERSTUDY_ACTIVE_ADDRESS"}, Demote: Command{"demote"}, Prepare: Command{"rewind", "-D", "data"}, Reclone: Command{"basebackup"}, Attempts: 4, PositionsFrom: 2, MaxLag: 1 << 20,
		Interval: 2 * time.Second, Timeout: 3 * time.Second, StateDir: "/srv/state",
	}
	if diff := cmp.Diff(want, cfg.Services["s"].Replicated); diff != "" {
		t.Error(diff)
	}
	want = &Replicated{
		Role: Command{"r"}, Position: Command{"p"}, Promote: Command{"pr"}, Follow: Command{"f"}, Attempts: 5, PositionsFrom: 1,
		Interval: time.Second, Timeout: 10 * time.Second, StateDir: "/var/lib/understudy",
	}
	if diff := cmp.Diff(want, cfg.Services["t"].Replicated); diff != "" {
		t.Error(diff)
	}
}
