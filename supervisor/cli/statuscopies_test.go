package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/testbed/must"
)

// Below its nodes a replicated service has its copies, and how old the primary's position is.
func TestStatusListsTheCopies(t *testing.T) {
	copies := []control.CopyStatus{
		{Node: "n1", Is: control.CopyPrimary, Words: "primary, position 123456", Asked: at(1200 * time.Millisecond)},
		{Node: "n2", Is: control.CopyFollower, Words: "follower, position 123450, 6 behind, reaches the primary"},
		{Node: "n3", Is: control.CopyFollower, Why: "it has no position", Words: "follower (it has no position), position 123000 3m12s ago, 456 behind, does not reach the primary (tcp 10.0.0.1:6379: no answer)"},
	}
	v := control.ServiceStatus{Service: "redis", Active: "n1", Lock: "n1", Token: 4294967317, Since: at(time.Hour), Copies: copies, Members: []control.MemberStatus{
		{Node: "n1", Role: election.RoleActive, Health: election.HealthOK, Since: at(time.Hour), Why: "not reachable for 1 of 2: n3"},
		{Node: "n2", Role: election.RoleStandby, Health: election.HealthOK, Since: at(time.Hour)},
		{Node: "n3", Role: election.RoleStandby, Health: election.HealthOK, Since: at(time.Hour)},
	}}
	var b bytes.Buffer
	must.OK(t, writeStatus(&b, paper{screen: screen{width: 80}}, control.Status{Services: []control.ServiceStatus{v}}, now))
	want := `SERVICE  NODE  ROLE     SINCE  HEALTH       TOKEN
redis    n1    active   1h00m  ok      4294967317
  n1: not reachable for 1 of 2: n3
         n2    standby  1h00m  ok
         n3    standby  1h00m  ok
  Copies, as of the primary's position 1.2s ago:
    n1: primary, position 123456
    n2: follower, position 123450, 6 behind, reaches the primary
    n3: follower (it has no position), position 123000 3m12s ago, 456 behind,
      does not reach the primary (tcp 10.0.0.1:6379: no answer)
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The reason why no copy is promoted is the same on most nodes: it is shown once, and what another node says beside it.
func TestTheReasonWhyNoCopyIsPromotedIsShownOnce(t *testing.T) {
	why := "0 of 1 copies have reported their position"
	v := control.ServiceStatus{Service: "db", Copies: []control.CopyStatus{{Node: "n1"}}}
	for node, says := range map[string]string{"n1": why, "n2": why, "n3": "the copies differ"} {
		v.Members = append(v.Members, control.MemberStatus{Node: node, Role: election.RoleStandby, Health: election.HealthOK, Why: says})
	}
	slices.SortFunc(v.Members, func(a, b control.MemberStatus) int { return strings.Compare(a.Node, b.Node) })
	v.Problems = control.Problems(v, now)
	var b bytes.Buffer
	must.OK(t, writeStatus(&b, paper{screen: screen{width: 200}}, control.Status{Services: []control.ServiceStatus{v}}, now))
	if got := b.String(); strings.Count(got, why) != 1 || !strings.Contains(got, "because no copy is promoted. The reason on n1 is: "+why+".") || !strings.Contains(got, "n3: the copies differ") {
		t.Errorf("got\n%s", got)
	}
}
