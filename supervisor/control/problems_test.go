package control

import (
	"strings"
	"testing"
	"time"

	"understudy/election"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) *time.Time {
	t := noon.Add(-d)
	return &t
}

// words are the problems of a service as one reads them.
func words(v ServiceStatus) (all []string) {
	for _, f := range Problems(v, noon) {
		all = append(all, f.Level+": "+f.What+" "+f.Hint+" "+f.Do.String())
	}
	return all
}

// A service whose active node was lost during a pause needs the end of the pause, and perhaps nothing else: nobody is led to confirm a death.
func TestAPauseIsToldBeforeABlockedTakeover(t *testing.T) {
	standby := MemberStatus{Node: "b", Role: election.RolePaused, Health: election.HealthOK}
	lost := ServiceStatus{Service: "web", Fencing: &FencingStatus{Node: "a"}, Members: []MemberStatus{standby}, Paused: true, Order: "paused by me@op: new disks"}
	got := words(lost)
	if len(got) != 2 || !strings.HasPrefix(got[0], "fault: DOWN: automatic takeovers are off (paused by me@op: new disks)") ||
		!strings.HasSuffix(got[0], "understudy resume web") || !strings.Contains(got[1], "a was active last") {
		t.Errorf("got %q", got)
	}
	if strings.Contains(strings.Join(got, ""), "fence confirm") {
		t.Errorf("a dangerous command where another one helps: %q", got)
	}
	lost.Paused, lost.Members = false, []MemberStatus{{Node: "b", Role: election.RoleFailed, Health: election.HealthFailed, Since: before(4 * time.Second),
		Why: "the previous node's program may be alive: exec: exit status 1", Retry: before(-56 * time.Second)}}
	got = words(lost)
	if !strings.Contains(got[0], "If you are wrong, two copies run. Then: understudy fence confirm web --node a") ||
		!strings.Contains(strings.Join(got, " "), "b failed here 4s ago, the previous node's program may be alive: exec: exit status 1. It tries again in 56s.") {
		t.Errorf("got %q", got)
	}
}

func TestATakeoverThatIsNotBlockedNeedsNobody(t *testing.T) {
	v := ServiceStatus{Service: "web", Lock: "b", Members: []MemberStatus{{Node: "b", Role: election.RoleFencing}}}
	for ago, confirmed := range map[time.Duration]bool{4 * time.Second: false, 16 * time.Second: true} {
		v.Fencing = &FencingStatus{Node: "a", By: "b", Since: before(ago)}
		if got := words(v); strings.Contains(strings.Join(got, ""), "fence confirm") != confirmed {
			t.Errorf("after %v: %q", ago, got)
		}
	}
}

func TestWhatIsWrongWithAStandbyAloneIsNoIllness(t *testing.T) {
	v := ServiceStatus{Service: "web", Active: "a", Members: []MemberStatus{
		{Node: "a", Role: election.RoleActive, Health: election.HealthOK}, {Node: "b", Role: election.RoleFailed, Health: election.HealthFailed},
	}}
	v.Problems = Problems(v, time.Now())
	if got, words := v.Judge(); got != Alone || !strings.Contains(words, "b failed here") {
		t.Errorf("%v: %s", got, words)
	}
	v.Members[0].Health = election.HealthFailing
	v.Problems = Problems(v, time.Now())
	if got, words := v.Judge(); got != Unhealthy {
		t.Errorf("%v: %s", got, words)
	}
}

func TestMissingCopiesAreToldBeforeABlockedTakeover(t *testing.T) {
	standby := MemberStatus{Node: "b", Role: election.RoleStandby, Health: election.HealthOK, Why: "1 of 2 copies have reported their position"}
	lost := ServiceStatus{
		Service: "db", Fencing: &FencingStatus{Node: "a"}, Members: []MemberStatus{standby}, Copies: []CopyStatus{{Node: "b"}},
	}
	got := words(lost)
	if len(got) != 1 || !strings.HasPrefix(got[0], "fault: No node is active yet, because no copy is promoted. The reason on b is: 1 of 2 copies") {
		t.Errorf("got %q", got)
	}
}

func TestACrashLoopIsSeenBetweenTwoCrashes(t *testing.T) {
	m := MemberStatus{Node: "a", Role: election.RoleActive, Health: election.HealthOK, Restarts: 4, Exit: "killed by SIGSEGV", Exited: before(12 * time.Second)}
	v := ServiceStatus{Service: "web", Active: "a", Members: []MemberStatus{m, {Node: "b", Role: election.RoleStandby, Health: election.HealthOK}}}
	if got := words(v); len(got) != 1 || !strings.Contains(got[0], "On a, the program was restarted 4 times, the last time 12s ago, because: killed by SIGSEGV.") {
		t.Errorf("got %q", got)
	}
	v.Members[0].Restarts, v.Members[0].Exit = 1, "the program ended: killed by SIGHUP"
	if got := words(v); len(got) != 1 || !strings.Contains(got[0], "On a, the program was restarted once, 12s ago, because: killed by SIGHUP.") {
		t.Errorf("got %q", got)
	}
	v.Members[0].Exited = before(time.Hour)
	if got := words(v); len(got) != 0 {
		t.Errorf("an hour later: %q", got)
	}
}

// While no copy may be promoted, nobody is about to take the service, and the nodes know why.
func TestTheReasonWhyNoCopyIsPromotedIsTold(t *testing.T) {
	why := "1 of 2 copies have reported their position (b: it has no position)"
	member := func(node, why string) MemberStatus {
		return MemberStatus{Node: node, Role: election.RoleStandby, Health: election.HealthOK, Why: why}
	}
	v := ServiceStatus{Service: "db", Copies: []CopyStatus{{Node: "a"}}, Members: []MemberStatus{member("a", ""), member("b", why)}}
	if got := words(v); len(got) != 1 || !strings.Contains(got[0], "No node is active yet, because no copy is promoted. The reason on b is: "+why+".") {
		t.Errorf("got %q", got)
	}
	v.First = true
	for reason, want := range map[string]string{
		"c: " + NothingReported: "Start the nodes that are missing. If they are lost, choose the copy to begin with:",
		why:                     "Remove that reason. If that cannot be, choose the copy to begin with:",
	} {
		v.Members[1].Why = reason
		if got := Problems(v, time.Now())[0].Hint; got != want {
			t.Errorf("%s: %q", reason, got)
		}
	}
	v.Members[1].Demoted, v.Members[1].Why = true, "not preferred any more"
	if got := words(v); len(got) != 1 || !strings.Contains(got[0], "A standby is about to take it.") {
		t.Errorf("got %q", got)
	}
}
