package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func draw(seed uint64, bursts int) (all [][]stroke) {
	p := newPlan(seed, kinds(meansOf(seed)))
	for range bursts {
		_, b := p.burst()
		all = append(all, b)
	}
	return all
}

func TestScheduleFollowsFromTheSeed(t *testing.T) {
	same := []cmp.Option{cmp.AllowUnexported(stroke{}, kind{}), cmpopts.IgnoreFields(kind{}, "strike")}
	if diff := cmp.Diff(draw(7, 300), draw(7, 300), same...); diff != "" {
		t.Errorf("two draws of one seed differ: %s", diff)
	}
	if cmp.Equal(draw(7, 300), draw(8, 300), same...) {
		t.Error("two seeds draw the same")
	}
}

// As many bursts as five minutes have place for show every kind, alone or with others.
func TestEveryKindHasItsTurn(t *testing.T) {
	everywhere := map[string]bool{}
	for seed := range uint64(50) {
		there := len(kinds(meansOf(seed)))
		seen, together := map[string]bool{}, 0
		for _, burst := range draw(seed, 40) {
			for _, s := range burst {
				seen[s.kind.name], everywhere[s.kind.name] = true, true
				if s.last < s.kind.shortest || s.last > s.kind.longest {
					t.Errorf("%s lasts %v", s.kind.name, s.last)
				}
			}
			if len(burst) > 1 {
				together++
			}
		}
		if len(seen) != there {
			t.Errorf("seed %d: %d of %d kinds in 40 bursts", seed, len(seen), there)
		}
		if together < 5 {
			t.Errorf("seed %d: only %d of 40 bursts have several faults", seed, together)
		}
	}
	if all := kinds(means{secret: true, certificates: true}); len(everywhere) != len(all) {
		t.Errorf("%d of %d kinds with any seed", len(everywhere), len(all))
	}
}
