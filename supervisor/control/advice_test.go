package control

import (
	"strings"
	"testing"
	"time"

	"understudy/election"
)

// A service whose supervisors are all gone is down, and `forget` is not the first advice.
func TestAServiceWithoutSupervisorsIsDown(t *testing.T) {
	got := words(ServiceStatus{Service: "web", Gone: []string{"a"}})
	if len(got) != 1 || !strings.HasPrefix(got[0], "fault: DOWN: no supervisor") || strings.Index(got[0], "systemctl status understudy") > strings.Index(got[0], "understudy forget web") {
		t.Errorf("got %q", got)
	}
}

// Where a config file has the service, nobody is told to wrap a command by hand.
func TestAServiceOfAFileNeedsTheFileOnAnotherHost(t *testing.T) {
	v := ServiceStatus{Service: "web", Active: "a", Members: []MemberStatus{{Node: "a", Role: election.RoleActive, Health: election.HealthOK}}, FromFile: true}
	if got := words(v); len(got) != 1 || !strings.Contains(got[0], "Start understudy on another host with the same config.") || strings.Contains(got[0], "understudy run") {
		t.Errorf("got %q", got)
	}
}

// A reason is told once, and in words: the output's command is the one that finds it.
func TestAReasonIsToldOnce(t *testing.T) {
	m := MemberStatus{Node: "a", Role: election.RoleFailed, Health: election.HealthFailed, Cause: election.ChildDone, Why: "the program ended: exit code 0", Since: before(time.Second)}
	got := strings.Join(words(ServiceStatus{Service: "web", Members: []MemberStatus{m}}), "\n")
	if !strings.Contains(got, "a failed here 1s ago, the program ended: exit code 0. It tries again later. A program that should keep running must stay in the foreground.") ||
		!strings.Contains(got, "journalctl -t web") {
		t.Errorf("got %q", got)
	}
	m.Role, m.Why = election.RoleStopping, string(election.ChildOnce)
	if got := because(m); got != ", program ran once" {
		t.Errorf("got %q", got)
	}
	m = MemberStatus{Node: "a", Role: election.RoleActive, Health: election.HealthFailing, Why: "unhealthy: tcp: refused"}
	m.Logs = true
	if got := strings.Join(words(ServiceStatus{Service: "web", Active: "a", Members: []MemberStatus{m}}), ""); !strings.Contains(got, "a is unhealthy, tcp: refused.") || !strings.Contains(got, "understudy logs web") {
		t.Errorf("got %q", got)
	}
}

// A program whose output is lost runs, but not as it should: monitoring shall see that.
func TestOutputThatIsLostIsTold(t *testing.T) {
	m := MemberStatus{Node: "a", Role: election.RoleActive, Health: election.HealthOK, Unlogged: "/var/log/x: no space left on device"}
	v := ServiceStatus{Service: "web", Active: "a", Members: []MemberStatus{m, {Node: "b", Role: election.RoleStandby, Health: election.HealthOK}}}
	v.Problems = Problems(v, time.Now())
	const want = "active on a: a runs the program, but its output is lost: /var/log/x: no space left on device."
	if verdict, got := v.Judge(); verdict != Unhealthy || got != want {
		t.Errorf("%v, %q", verdict, got)
	}
}
