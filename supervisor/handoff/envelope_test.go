package handoff

import (
	"maps"
	"slices"
	"testing"

	"understudy/supervisor/replica"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
)

// An image that knows no copies must not go on beside programs of theirs: it refuses the envelope. One without copies it understands.
func TestAnEnvelopeCountsTheTreesOfEachLease(t *testing.T) {
	run := &unit.CarriedRun{}
	plain := service.CarriedService{Name: "web", Term: &service.CarriedTerm{Run: run}}
	follower := service.CarriedService{Name: "db", Copy: &replica.Carried{Lease: 70, Run: run}}
	promoted := service.CarriedService{
		Name: "queue", Term: &service.CarriedTerm{Run: run, Orders: []byte(`{}`)}, Copy: &replica.Carried{Lease: 71},
	}
	for _, c := range []struct {
		services []service.CarriedService
		version  int
		trees    map[uint64]int
		running  []string
	}{
		{nil, 3, map[uint64]int{5: 0}, nil},
		{[]service.CarriedService{plain, {Name: "idle"}}, 3, map[uint64]int{5: 1}, []string{"web"}},
		{[]service.CarriedService{plain, follower}, 4, map[uint64]int{5: 1, 70: 1}, []string{"db", "web"}},
		{[]service.CarriedService{promoted, plain, follower}, 4, map[uint64]int{5: 3, 70: 1, 71: 0}, []string{"db", "queue", "web"}},
	} {
		e := Envelope{Epoch: 5, Services: c.services}
		if trees := e.number(); e.Version != c.version || !maps.Equal(trees, c.trees) || !slices.Equal(e.Running(), c.running) || len(e.runs()) != len(c.running) {
			t.Errorf("version %d, %v, %v, want %+v", e.Version, trees, e.Running(), c)
		}
	}
}
