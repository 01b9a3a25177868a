package cli

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/testbed/must"
)

// With many services, too: the lost half of a pair is what there is to see between two incidents.
func TestALostNodeIsSeenAmongManyServices(t *testing.T) {
	s := control.Status{Gone: []control.GoneNode{{Node: "n2", Seen: at(3 * time.Minute), Bare: 25}}}
	for i := range 25 {
		v := control.ServiceStatus{Service: fmt.Sprintf("s%02d", i), Active: "n1", Gone: []string{"n2"}, Members: []control.MemberStatus{{Node: "n1", Role: election.RoleActive, Health: election.HealthOK}}}
		v.Problems = control.Problems(v, now)
		s.Services = append(s.Services, v)
	}
	lost := "  n2 is gone, last seen 3m0s ago: 25 services have no standby. Its supervisor,\n  host or network is down. If it does not come back:\n    understudy forget n2 --zk z\n"
	for _, failed := range []bool{false, true} {
		var b bytes.Buffer
		to := paper{screen: screen{width: 80}, flags: []string{"--zk z"}, selection: selection{failed: failed}}
		must.OK(t, writeStatus(&b, to, s, now))
		if text := b.String(); strings.Count(text, lost) != 1 || !strings.Contains(text, "25 services: 25 without a standby.") || strings.Contains(text, "--failed") == failed {
			t.Errorf("failed %v:\n%s", failed, text)
		}
	}
	if got := (selection{node: "n2"}).from(s); len(got.Services) != 25 || len(got.Gone) != 1 {
		t.Errorf("%+v", got)
	}
	if got := (selection{node: "n1"}).from(s); len(got.Services) != 25 || len(got.Gone) != 0 {
		t.Errorf("%+v", got)
	}
	s.Services = s.Services[:20]
	var few bytes.Buffer
	must.OK(t, writeStatus(&few, paper{screen: screen{width: 200}}, s, now))
	if told := "  s00, s01, s02, s03, s04 and 15 more: No standby: a failure of n1 would stop it. n2 is gone.\n"; strings.Count(few.String(), "No standby") != 1 || !strings.Contains(few.String(), told) {
		t.Errorf("what is the same is told more than once:\n%s", few.String())
	}
}

const notTold = "n2 cannot tell people what happens, because notify fails: exit code 1. It tries again."

const (
	unserved  = "127.0.0.1:8437: address already in use"
	notServed = "n2 does not serve HTTP at " + unserved + ". It tries again."
)

func TestThatPeopleAreNotToldIsSaidOnce(t *testing.T) {
	for name, services := range map[string][]control.ServiceStatus{"of a service": {{Service: "db"}, {Service: "web"}}, "of none": nil} {
		for _, failed := range []bool{false, true} {
			var b bytes.Buffer
			s := control.Status{Services: services, Nodes: []control.NodeStatus{{Node: "n1"}, {Node: "n2", Untold: "exit code 1", Unserved: unserved}}}
			must.OK(t, writeStatus(&b, paper{screen: screen{width: 200}, selection: selection{failed: failed}}, s, now))
			if strings.Count(b.String(), notTold) != 1 || strings.Count(b.String(), notServed) != 1 || strings.Contains(b.String(), "n1 cannot") {
				t.Errorf("%s, failed %v:\n%s", name, failed, b.String())
			}
		}
	}
}

func TestTheExitCodeOfACheckIsThatOfTheWorst(t *testing.T) {
	alone := control.ServiceStatus{Service: "well", Active: "n1", Members: []control.MemberStatus{{Node: "n1", Role: "active", Health: "ok"}}}
	well, paused, ill, down := alone, alone, alone, alone
	well.Members = append(slices.Clone(alone.Members), control.MemberStatus{Node: "n2", Role: "standby", Health: "ok"})
	never := alone
	never.Members = append(slices.Clone(alone.Members), control.MemberStatus{Node: "n2", Role: "standby", Health: "unfit", Never: true})
	paused.Paused, paused.Order = true, "paused by me"
	ill.Members = []control.MemberStatus{{Node: "n1", Role: "active", Health: "failing", Why: "exit code 1"}}
	down.Active, down.Members = "", nil
	drained, beside := alone, alone
	drained.Members = []control.MemberStatus{{Node: "n1", Role: "active", Health: "ok", Drained: &control.DrainedNode{Node: "n1", Words: "drained by me"}}}
	beside.Members = append(slices.Clone(alone.Members), control.MemberStatus{Node: "n2", Role: "standby", Health: "ok", Drained: &control.DrainedNode{}})
	for _, c := range []struct {
		services []control.ServiceStatus
		want     int
		words    string
	}{
		{[]control.ServiceStatus{well}, 0, "well: active on n1, ok\n"},
		{[]control.ServiceStatus{well, paused}, 6, "well: active on n1, paused: Automatic takeovers are off (paused by me).\n2 services: 1 paused, 1 active and ok.\n"},
		{[]control.ServiceStatus{paused, ill, well}, 4, "n1 is unhealthy, exit code 1."},
		{[]control.ServiceStatus{down, ill, paused}, 5, "well: DOWN: no supervisor that has this service in its config is connected.\n"},
		{slices.Repeat([]control.ServiceStatus{down}, 7), 5, "well, well, well, well, well and 2 more: DOWN: no supervisor that"},
		{[]control.ServiceStatus{drained}, 6, "well: active on n1, which is drained by me\n"},
		{[]control.ServiceStatus{paused, drained}, 6, "2 services: 2 paused or drained."},
		{[]control.ServiceStatus{beside}, 7, "well: active on n1, ok: No standby: a failure of n1 would stop it. None of the other nodes can take it now.\n"},
		{[]control.ServiceStatus{never}, 7, "No standby"},
		{[]control.ServiceStatus{alone}, 7, "well: active on n1, ok: No standby: a failure of n1 would stop it.\n"},
		{[]control.ServiceStatus{paused, alone, well, alone}, 7, "without a standby: well, well\nn2 is gone, last seen 1m0s ago: 2 services have no standby.\n4 services: 2 without a standby, 1 paused, 1 active and ok.\n"},
		{[]control.ServiceStatus{alone, ill}, 4, "exit code 1"},
		{nil, 5, "0 services.\nNothing of Understudy is below /wrong on zk: is --root right?\n"},
	} {
		for i := range c.services {
			c.services[i].Problems = control.Problems(c.services[i], now)
		}
		var b strings.Builder
		s := control.Status{Services: c.services, Where: "/wrong on zk"}
		if len(c.services) == 4 {
			s.Gone = []control.GoneNode{{Node: "n2", Seen: at(time.Minute), Bare: 2}}
		}
		err := checkStatus(&b, s, now)
		code := 0
		if status, ok := errors.AsType[exitStatus](err); ok {
			code = int(status)
		}
		// What is no trouble of a service is told, and changes no code.
		s.Nodes = []control.NodeStatus{{Node: "n1", Fault: "notify changed", Restart: true}, {Node: "n2", Untold: "exit code 1", Unserved: unserved, Fault: "u.yaml:1:1: x: unknown key", Config: "/u.yaml"}}
		if len(s.Services) == 1 {
			s.Services[0].Files = [][]string{{"n1"}, {"n2"}}
		}
		var more strings.Builder
		if again := checkStatus(&more, s, now); !errors.Is(again, err) {
			t.Errorf("%v, code %d: %s", again, c.want, more.String())
		}
		for line, told := range map[string]bool{
			notTold: true, notServed: true, "n1 has a new config:": false,
			"n2 keeps its previous config: u.yaml:1:1: x: unknown key. To see all errors, on n2: understudy check --config /u.yaml": true,
			"n1 runs another config file than n2: put the same file on every host.":                                                 len(s.Services) == 1,
		} {
			if strings.Contains(more.String(), line) != told {
				t.Errorf("code %d, without %q:\n%s", c.want, line, more.String())
			}
		}
		if code != c.want || !strings.Contains(b.String(), c.words) {
			t.Errorf("code %d, want %d: %s", code, c.want, b.String())
		}
	}
}

// A job that has run is no missing node's fault, and its outcome is in the table.
func TestAJobThatHasRunIsShownWithItsOutcome(t *testing.T) {
	s := control.Status{}
	for _, exit := range []string{"exit code 0", "exit code 3"} {
		v := control.ServiceStatus{Service: "job", Ran: &control.HistoryEntry{Node: "n1", End: at(time.Minute), Exit: exit}}
		v.Problems = control.Problems(v, now)
		s.Services = append(s.Services, v)
	}
	var b, check bytes.Buffer
	must.OK(t, writeStatus(&b, paper{screen: screen{width: 80}, flags: []string{"--zk z"}}, s, now))
	for _, want := range []string{"exit code 0", "exit code 3", "n1    done", "n1 ran it once, and it failed: exit code 3.", "2 services: 1 unhealthy, 1 done."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if err := checkStatus(&check, s, now); !errors.Is(err, exitStatus(4)) || strings.Contains(b.String(), "DOWN") {
		t.Errorf("%v: %s", err, check.String())
	}
	if err := checkStatus(&check, control.Status{Services: s.Services[:1]}, now); err != nil {
		t.Errorf("done: %v", err)
	}
}
