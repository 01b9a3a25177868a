package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/testbed/must"
)

// A node that could not start a service says why, also where there are many, and in the one line that a pager shows.
func TestAnUnfitNodeSaysWhyAmongMany(t *testing.T) {
	unfit := func(node, why string) control.MemberStatus {
		return control.MemberStatus{Node: node, Role: election.RoleStandby, Health: election.HealthUnfit, Why: "it could not start here: " + why}
	}
	down := control.ServiceStatus{Service: "mail", Members: []control.MemberStatus{unfit("n1", "there is no user mail"), unfit("n2", "/srv is missing")}}
	alone := control.ServiceStatus{Service: "web", Active: "n1", Members: []control.MemberStatus{
		{Node: "n1", Role: election.RoleActive, Health: election.HealthOK}, unfit("n2", "10.0.0.1:80 is answered by nginx"),
	}}
	s := control.Status{Services: []control.ServiceStatus{down, alone}}
	for i := range 20 {
		s.Services = append(s.Services, control.ServiceStatus{Service: fmt.Sprint("s", i), Active: "n1", Members: []control.MemberStatus{
			{Node: "n1", Role: election.RoleActive, Health: election.HealthOK}, {Node: "n2", Role: election.RoleStandby, Health: election.HealthOK},
		}})
	}
	for i := range s.Services {
		s.Services[i].Problems = control.Problems(s.Services[i], now)
	}
	var many bytes.Buffer
	must.OK(t, writeStatus(&many, paper{screen: screen{width: 200}}, s, now))
	for _, why := range []string{
		"n1 cannot take it, it could not start here: there is no user mail.", "n2 cannot take it, it could not start here: /srv is missing.",
		"n2 cannot take it, it could not start here: 10.0.0.1:80 is answered by nginx.",
	} {
		if strings.Count(many.String(), why) != 1 {
			t.Errorf("not once: %q in\n%s", why, many.String())
		}
	}
	for service, want := range map[*control.ServiceStatus]string{
		&s.Services[0]: "mail: DOWN: no node can run it now. n1 cannot take it, it could not start here: there is no user mail. n2 cannot take it, it could not start here: /srv is missing.\n",
		&s.Services[1]: "web: active on n1, ok: No standby: a failure of n1 would stop it. None of the other nodes can take it now. " +
			"n2 cannot take it, it could not start here: 10.0.0.1:80 is answered by nginx.\n",
	} {
		var b strings.Builder
		_ = checkStatus(&b, control.Status{Services: []control.ServiceStatus{*service}}, now) // the exit code is another test's
		if b.String() != want {
			t.Errorf("%q, want %q", b.String(), want)
		}
	}
}

// A service that is down has the reason in its line, whatever keeps its nodes from taking it.
func TestACheckGivesTheReasonWhyAServiceIsDown(t *testing.T) {
	failed := control.MemberStatus{Node: "n1", Role: election.RoleFailed, Health: election.HealthFailed, Since: at(4 * time.Second), Why: "the program ended: exit code 3"}
	drained := control.MemberStatus{Node: "n2", Role: election.RoleStandby, Health: election.HealthOK, Drained: &control.DrainedNode{Node: "n2", Words: "drained by me"}}
	v := control.ServiceStatus{Service: "db", Members: []control.MemberStatus{failed, drained}}
	v.Problems = control.Problems(v, now)
	var b strings.Builder
	_ = checkStatus(&b, control.Status{Services: []control.ServiceStatus{v}}, now) // the exit code is another test's
	want := "db: DOWN: no node can run it now. n1 failed here 4s ago, the program ended: exit code 3. It tries again later. n2 is drained by me.\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
