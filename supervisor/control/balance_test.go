package control

import (
	"fmt"
	"slices"
	"testing"

	"understudy/election"
)

// placed is a service that is active on the first of these nodes, and may be on the others.
func placed(name string, nodes ...string) ServiceStatus {
	v := ServiceStatus{Service: name, Active: nodes[0]}
	for i, node := range nodes {
		role := election.RoleStandby
		if i == 0 {
			role = election.RoleActive
		}
		v.Members = append(v.Members, MemberStatus{Node: node, Role: role, Health: election.HealthOK})
	}
	return v
}

// spread is placed, and has a word.
func spread(name string, nodes ...string) ServiceStatus {
	v := placed(name, nodes...)
	for i := range v.Members {
		v.Members[i].Spread = "jvm"
	}
	return v
}

func TestServicesAreBalancedOverTheNodesThatMayHaveThem(t *testing.T) {
	many := make([]ServiceStatus, 200)
	for i := range many {
		many[i] = placed(fmt.Sprintf("s%03d", i), "a", "b")
	}
	paused := placed("p", "a", "b")
	paused.Paused = true
	for name, c := range map[string]struct {
		services   []ServiceStatus
		priorities map[string]int // of each service
		want       []Move         // nil: count is looked at alone
		count      int
	}{
		"one of two nodes came back":   {services: many, count: 100},
		"all is well":                  {services: []ServiceStatus{placed("x", "a", "b"), placed("y", "b", "a")}},
		"two on one":                   {services: []ServiceStatus{placed("x", "a", "b"), placed("y", "a", "b")}, want: []Move{{"x", "a", "b"}}, count: 1},
		"what is paused stays":         {services: []ServiceStatus{paused, placed("y", "a", "b")}, want: []Move{{"y", "a", "b"}}, count: 1},
		"what is preferred here stays": {services: []ServiceStatus{placed("x", "a", "b"), placed("y", "a", "b")}, priorities: map[string]int{"a": 10}},
		"the emptiest node is first": {
			services: []ServiceStatus{placed("w", "a", "b", "c"), placed("x", "a", "b", "c"), placed("y", "a", "b", "c"), placed("z", "b", "a")},
			want:     []Move{{"w", "a", "c"}}, count: 1,
		},
		"two of a word":              {services: []ServiceStatus{spread("x", "a", "b", "c"), spread("y", "a", "b", "c"), placed("z", "b", "a", "c")}, want: []Move{{"x", "a", "c"}}, count: 1},
		"two of a word on two nodes": {services: []ServiceStatus{spread("x", "a", "b"), spread("y", "b", "a"), placed("z", "a", "b")}},
		"nowhere else":               {services: []ServiceStatus{placed("x", "a"), placed("y", "a"), placed("z", "b")}},
		"nothing":                    {},
	} {
		priorities := slices.Repeat([]map[string]int{c.priorities}, len(c.services))
		got := balanced(c.services, priorities)
		if len(got) != c.count || c.want != nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: %d moves, %v", name, len(got), got[:min(len(got), 3)])
		}
	}
}
