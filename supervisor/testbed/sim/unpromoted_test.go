package sim

import (
	"testing"

	judge "understudy/supervisor/copies"
)

// The simulated operator reads the reasons in the words in which nodes give them.
func TestAnOperatorChoosesACopyWhereNodesDoNotFindOutByThemselves(t *testing.T) {
	at := uint64(9)
	rules := judge.Rules{Promoted: 5}
	for name, c := range map[string]struct {
		told judge.Told
		want bool
	}{
		"it was on its way":             {judge.Told{Node: "a", Stands: true, Followed: 4, Toward: 5, Position: &at}, true},
		"it has followed nobody":        {judge.Told{Node: "a", Stands: true, Position: &at}, true},
		"it has no position":            {judge.Told{Node: "a", Stands: true, Followed: 5}, false},
		"its node does not want it now": {judge.Told{Node: "a", Followed: 5, Position: &at}, false},
	} {
		v := rules.Judge([]judge.Told{c.told})
		cv := copiesView{asks: map[string]bool{}, picks: map[string]bool{}}
		if cv.unpromoted("s", v.Why); v.Node != "" || cv.asks["s"] != c.want {
			t.Errorf("%s: %+v, and the operator chooses: %v", name, v, cv.asks["s"])
		}
	}
}
