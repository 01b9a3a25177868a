package handoff

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"understudy/supervisor/service"
)

// An image that knows no copies must not go on beside programs of theirs: it refuses the envelope. One without copies it understands.
func TestAnEnvelopeCountsTheTreesOfEachLease(t *testing.T) {
	written := func(text string) (r service.CarriedService) {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	plain := written(`{"name": "web", "term": {"run": {}}}`)
	follower := written(`{"name": "db", "copy": {"lease": 70, "run": {}}}`)
	promoted := written(`{"name": "queue", "term": {"run": {}, "promote_tree": {"tree": 1}}, "copy": {"lease": 71}}`)
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
