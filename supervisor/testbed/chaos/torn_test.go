package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEphemeralsAreTakenOutOfADump(t *testing.T) {
	const dump = "SessionTracker dump:\nSession Sets (1)/(1):\n1 expire at Sun Nov 22 08:03:10 UTC 2026:\n\t0x2000\n" +
		"ephemeral nodes dump:\nSessions with Ephemerals (2):\n0x2000:\n\t/chaos/nodes/a\n\t/chaos/services/x/members/a\n0x1000:\n\t/chaos/nodes/b\n" +
		"Connections dump:\nConnections Sets (1)/(1):\n1 expire at Sun Nov 22 08:03:10 UTC 2026:\n\tip: /10.100.0.1:5000 sessionId: 0x2000\n"
	want := []string{"0x1000:/chaos/nodes/b", "0x2000:/chaos/nodes/a", "0x2000:/chaos/services/x/members/a"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(ephemerals(dump)))); diff != "" {
		t.Error(diff)
	}
}
