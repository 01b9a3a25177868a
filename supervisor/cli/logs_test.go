package cli

import (
	"testing"

	"understudy/supervisor/control"
)

// A node of this host may have another name than the config gives. Then the operator is not sent to another host.
func TestWhereAnotherNodesOutputIs(t *testing.T) {
	for host, want := range map[string]string{
		"vm":    "db is active on h1 now, another node of this host: name its config with --config if it is not u.yaml",
		"other": "db is active on h1 now, and its output is there: type `understudy logs db` on h1",
		"":      "db is active on h1 now, and its output is there: type `understudy logs db` on h1",
	} {
		s := control.ServiceStatus{Service: "db", Active: "h1", Host: host}
		if got := activeElsewhere(s, "vm", "u.yaml"); got != want {
			t.Errorf("active on the host %q: %q, want %q", host, got, want)
		}
	}
}
