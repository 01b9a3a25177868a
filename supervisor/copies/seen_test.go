package copies

import "testing"

// A node that cannot tell is none of those that have to agree.
func TestAQuorumOfThoseThatCanTellDecides(t *testing.T) {
	for _, c := range []struct {
		ill, well string // of one letter each
		want      map[Quorum]string
	}{
		{"", "", nil},
		{"", "ab", nil},
		{"a", "", map[Quorum]string{Majority: "for 1 of 1: a", All: "for 1 of 1: a", Any: "for 1 of 1: a"}},
		{"b", "a", map[Quorum]string{Any: "for 1 of 2: b"}},
		{"ca", "b", map[Quorum]string{Majority: "for 2 of 3: a, c", Any: "for 2 of 3: a, c"}},
		{"ba", "", map[Quorum]string{Majority: "for 2 of 2: a, b", All: "for 2 of 2: a, b", Any: "for 2 of 2: a, b"}},
		{"ab", "cd", map[Quorum]string{Any: "for 2 of 4: a, b"}},
	} {
		var all []Vote
		for _, n := range c.ill {
			all = append(all, Vote{Node: string(n), Why: "no answer to " + string(n)})
		}
		for _, n := range c.well {
			all = append(all, Vote{Node: string(n), Well: true})
		}
		for _, q := range []Quorum{Majority, All, Any} {
			who, why := q.Unreachable(all)
			if who != c.want[q] || (why != "") != (who != "") {
				t.Errorf("%s of ill %q, well %q: %q, %q, want %q", q, c.ill, c.well, who, why, c.want[q])
			}
		}
	}
}
