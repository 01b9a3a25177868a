package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/testbed/must"
)

var now = time.Date(2026, 7, 1, 10, 3, 12, 0, time.UTC)

func at(before time.Duration) *time.Time {
	t := now.Add(-before)
	return &t
}

// staged is a cluster in which everything happens that status has words for.
func staged(prefix string) control.Status {
	member := func(node string, role election.Role, why string, ago time.Duration) control.MemberStatus {
		health := election.HealthOK
		if role == election.RoleFailed {
			health = election.HealthFailed
		}
		return control.MemberStatus{Node: prefix + node, Host: "h", Role: role, Health: health, Why: why, Since: at(ago)}
	}
	s := control.Status{Nodes: []control.NodeStatus{}, Services: []control.ServiceStatus{
		{
			Service: prefix + "cache", Active: prefix + "n1", Lock: prefix + "n1", Token: 4294967301, Since: at(192 * time.Second),
			Members: []control.MemberStatus{member("n1", "active", "", 192*time.Second), member("n2", "standby", "", 26*time.Hour)},
		},
		{
			Service: prefix + "db", Lock: prefix + "n2", Fencing: &control.FencingStatus{Node: prefix + "n1", By: prefix + "n2", Since: at(4 * time.Second)},
			Members: []control.MemberStatus{member("n2", "fencing", "", 4*time.Second)},
		},
		{Service: prefix + "idle", Members: []control.MemberStatus{}},
		{
			Service: prefix + "mail", Fencing: &control.FencingStatus{Node: prefix + "n3"},
			Members: []control.MemberStatus{member("n2", "failed", "the previous node's program may be alive", 61*time.Second)},
		},
		{Service: prefix + "news", Fencing: &control.FencingStatus{Node: prefix + "n3"}, Members: []control.MemberStatus{}},
		{
			Service: prefix + "solo", Active: prefix + "n1", Lock: prefix + "n1", Token: 7,
			Members: []control.MemberStatus{member("n1", "active", "", time.Hour), {Node: prefix + "n2", Role: "standby", Health: "unfit", Why: "eligible: false in its config", Never: true}},
		},
		{Service: prefix + "sole", Active: prefix + "n1", Lock: prefix + "n1", Token: 8, Members: []control.MemberStatus{member("n1", "active", "", time.Hour)}},
		{
			Service: prefix + "still", Active: prefix + "n1", Handing: &control.Handing{From: prefix + "n1", By: "me@op"}, Lock: prefix + "n1", Token: 9, Paused: true, Order: "paused by me",
			Members: []control.MemberStatus{member("n1", "active", "paused by me", time.Hour), member("n2", "paused", "paused by me", time.Hour)},
		},
		{Service: prefix + "web", Members: []control.MemberStatus{member("n1", "standby", "", 0)}},
	}}
	for i := range s.Services {
		s.Services[i].Problems = control.Problems(s.Services[i], now)
	}
	return s
}

func TestStatusTellsWhoIsActiveAndWhatMendsWhatIsWrong(t *testing.T) {
	var b bytes.Buffer
	must.OK(t, writeStatus(&b, paper{screen: screen{width: 80}, flags: []string{"--zk zk1:2181"}}, staged(""), now))
	want := `SERVICE  NODE    ROLE     SINCE  HEALTH       TOKEN
cache    n1      active   3m12s  ok      4294967301
         n2      standby  1d02h  ok
db       n2      fencing     4s  ok
  n2 takes over from n1, and starts nothing before the program there is known to
  be dead.
idle     nobody
  DOWN: no supervisor that has this service in its config is connected. On its
  hosts, systemctl status understudy shows whether it runs, and why not. If no
  config has the service any more:
    understudy forget idle --zk zk1:2181
mail     n2      failed   1m01s  failed
  n2 failed here 1m1s ago, the previous node's program may be alive. It tries
  again later.
  DOWN: the program may still run on n3, and no node has proved that it is dead.
  Check n3 first: it is off, or no process of the program is left there. If you
  are wrong, two copies run. Then:
    understudy fence confirm mail --node n3 --zk zk1:2181
news     nobody
  n3 was active last, and its program may still run. The node that is active
  next makes sure first that it is dead.
solo     n1      active   1h00m  ok               7
         n2      standby      -  unfit
  n2: eligible: false in its config
  No standby: a failure of n1 would stop it. None of the other nodes can take it
  now.
sole     n1      active   1h00m  ok               8
  No standby: a failure of n1 would stop it. Run it on another node too:
    understudy run --service sole --node NODE --zk zk1:2181 -- COMMAND
still    n1      active   1h00m  ok               9
         n2      paused   1h00m  ok
  Automatic takeovers are off (paused by me). To turn them on again:
    understudy resume still --zk zk1:2181
  me@op has ordered a switchover from n1 to the first node that can take it.
web      n1      standby     0s  ok
  No node is active yet. A standby is about to take it.
9 services: 5 active nowhere, 2 without a standby, 1 paused, 1 active and ok.
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNodesWithOtherConfigFilesAreNamedOnce(t *testing.T) {
	s := staged("")
	s.Services = s.Services[:2]
	for i := range s.Services {
		s.Services[i].Files = [][]string{{"n1", "n2"}, {"n3"}, {"n4"}}
	}
	var b bytes.Buffer
	must.OK(t, writeStatus(&b, paper{screen: screen{width: 80}}, s, now))
	for _, other := range []string{"n3", "n4"} {
		if line := "  n1, n2 run another config file than " + other + ": put the same file on every host.\n"; strings.Count(b.String(), line) != 1 {
			t.Errorf("not once: %s in\n%s", line, b.String())
		}
	}
}

func TestLinesFitTheScreenWhateverNamesAreLike(t *testing.T) {
	long := strings.Repeat("long-", 11)
	for _, width := range []int{80, 132} {
		var b bytes.Buffer
		must.OK(t, writeStatus(&b, paper{screen: screen{width: width}, flags: []string{"--zk zk1:2181,zk2:2181,zk3:2181", "--root /understudy"}}, staged(long), now))
		must.OK(t, writeHistory(&b, screen{width: width}, past(long), now, true))
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
		}
		if !strings.Contains(b.String(), "n1 ") {
			t.Error("shortened names have lost the end that tells them apart")
		}
	}
}

func TestTimesAreRelativeInTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", 192 * time.Second: "3m12s", time.Hour: "1h00m",
		25*time.Hour + 59*time.Minute: "1d01h", 400 * 24 * time.Hour: "400d00h",
	} {
		if got := ago(d); got != want {
			t.Errorf("ago(%v) is %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0ms", 12 * time.Millisecond: "12ms", 2345 * time.Millisecond: "2.3s", time.Minute: "1m00s"} {
		if got := brief(d); got != want {
			t.Errorf("brief(%v) is %q, want %q", d, got, want)
		}
	}
}

// A name that a client wrote to ZooKeeper is no word of a command that an operator copies, and a path is one word.
func TestACommandIsMadeOfPlainNamesAndQuotedPaths(t *testing.T) {
	now := time.Now()
	for _, evil := range []string{"db-1 --yes --force", "--force", "-h", "a\nb", "$(id)", "a;b", "a'b", ""} {
		for what, v := range map[string]control.ServiceStatus{
			"service":        {Service: evil, Paused: true, Order: "paused"},
			"fenced service": {Service: evil, Fencing: &control.FencingStatus{Node: "n1", By: "n2"}},
			"fenced node":    {Service: "db", Fencing: &control.FencingStatus{Node: evil, By: "n2"}},
			"failed":         {Service: evil, Active: "n1", Members: []control.MemberStatus{{Node: "n1", Role: "failed", Logs: true}}},
		} {
			for _, f := range control.Problems(v, now) {
				if len(f.Do.Words) > 0 || len(f.Do.Words) == 0 && f.Hint != "" {
					t.Errorf("%q as %s: %q, %q", evil, what, f.Hint, f.Do)
				}
			}
		}
	}
	sound := control.ServiceStatus{Service: "db", Fencing: &control.FencingStatus{Node: "n@1:x.y", By: "n2"}}
	if do := control.Problems(sound, now)[0].Do.String(); do != "understudy fence confirm db --node n@1:x.y" {
		t.Error(do)
	}
	node := control.NodeStatus{Node: "n1", Fault: "x", Config: "/a b'; id; '/$(id)\n.yaml"}
	lines := strings.Join(misconfigured(screen{width: 400}, node), "\n")
	if !strings.HasSuffix(lines, `understudy check --config '/a b'\''; id; '\''/$(id)?.yaml'`) {
		t.Error(lines)
	}
	f := clusterFlags{ZK: "zk1:2181,zk2:2181", Root: "/a b", Config: "/x;y"}
	if got := strings.Join(f.words(), " "); got != "--zk zk1:2181,zk2:2181 --root '/a b' --config '/x;y'" {
		t.Error(got)
	}
}

func TestACommandThatDoesNotFitGoesOnAsAShellExpects(t *testing.T) {
	got := strings.Join(command(40, "understudy fence confirm db", "--node n1", "--zk zk1:2181,zk2:2181"), "\n")
	if want := "    understudy fence confirm db \\\n      --node n1 --zk zk1:2181,zk2:2181"; got != want {
		t.Errorf("got\n%s", got)
	}
}

// What is shown was written to ZooKeeper by whoever can, or is the last line of somebody's health check: a terminal must not
// take it for orders, nor a reader for another row, nor a shell for a command.
func TestWhatOthersWroteIsOnlyText(t *testing.T) {
	const evil = "x\x1b]0;owned\x07\x1b[2J\u009b31m\nfake  b  active\u202e"
	s := control.Status{Services: []control.ServiceStatus{{
		Service: "db", Active: "n1", Token: 1, Lock: "n1", Paused: true, Order: "paused by " + evil, Failsafe: []string{evil},
		Members: []control.MemberStatus{{Node: "n1", Role: evil, Health: evil, Why: evil, Since: at(time.Hour)}},
	}, {
		Service: "safe", Active: "n1", Failsafe: []string{"n2", evil}, Members: []control.MemberStatus{{Node: "n1", Role: "active"}},
	}, {
		Service: "web", Fencing: &control.FencingStatus{Node: "x; reboot", By: "n2"}, Members: []control.MemberStatus{{Node: "n2", Role: "fencing"}},
	}}, Nodes: []control.NodeStatus{{Node: "n1", Fault: evil, Warnings: []string{evil}, Untold: evil, Unserved: evil}}}
	for i := range s.Services {
		s.Services[i].Problems = control.Problems(s.Services[i], now)
	}
	var b bytes.Buffer
	must.OK(t, writeStatus(&b, paper{screen: screen{width: 80}}, s, now))
	must.OK(t, writeHistory(&b, screen{width: 80}, []control.HistoryEntry{{Service: "db", Node: evil, Reason: evil, Fenced: evil}}, now, true))
	if strings.ContainsAny(b.String(), "\x1b\x07\u009b\u202e") {
		t.Errorf("orders for a terminal:\n%q", b.String())
	}
	var asJSON bytes.Buffer
	var back struct{ Nodes []control.NodeStatus }
	must.OK(t, errors.Join(writeJSON(&asJSON, s), json.Unmarshal(asJSON.Bytes(), &back)))
	if strings.ContainsAny(asJSON.String(), "\x1b\x07\u009b\u202e") || back.Nodes[0].Fault != evil {
		t.Errorf("orders for a terminal, or another fault than there is:\n%q", asJSON.String())
	}
	if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), "agree not to start it: n2, x") {
		t.Errorf("it does not say whose promises are counted on:\n%s", b.String())
	}
	if strings.Contains(b.String(), "\nfake") || strings.Contains(b.String(), "--node x; reboot") {
		t.Errorf("not only text:\n%s", b.String())
	}
}

// The lines of its services would repeat it.
func TestADrainIsToldOnce(t *testing.T) {
	out := control.DrainedNode{Node: "n2", Words: "drained by me 3m0s ago: new disks"}
	v := control.ServiceStatus{Service: "db", Active: "n1", Members: []control.MemberStatus{
		{Node: "n1", Role: election.RoleActive, Health: election.HealthOK},
		{Node: "n2", Role: election.RoleStandby, Health: election.HealthUnfit, Why: "drained by me: new disks", Drained: &out},
	}}
	v.Problems = control.Problems(v, now)
	var b strings.Builder
	must.OK(t, writeStatus(&b, paper{screen: screen{width: 120}}, control.Status{Services: []control.ServiceStatus{v}, Drained: []control.DrainedNode{out}}, now))
	if strings.Count(b.String(), "drained by me") != 1 || !strings.Contains(b.String(), "understudy undrain n2") {
		t.Error(b.String())
	}
}

func TestManyServicesTakeALineEach(t *testing.T) {
	var s control.Status
	for i := range 25 {
		v := control.ServiceStatus{Service: fmt.Sprintf("s%02d", i), Active: "n1", Since: at(time.Minute), Members: []control.MemberStatus{
			{Node: "n1", Role: election.RoleActive, Health: election.HealthOK}, {Node: "n2", Role: election.RoleStandby, Health: election.HealthOK},
		}}
		if i == 7 {
			v.Active, v.Since, v.Members = "", nil, []control.MemberStatus{{Node: "n2", Role: election.RoleFailed, Health: election.HealthFailed, Why: "program failed"}}
		}
		v.Problems = control.Problems(v, now)
		s.Services = append(s.Services, v)
	}
	text := func(to paper) string {
		var b bytes.Buffer
		must.OK(t, writeStatus(&b, to, s, now))
		return b.String()
	}
	if rows := strings.Split(text(paper{screen: screen{width: 80}}), "\n"); !strings.HasPrefix(rows[1], "s07 ") {
		t.Errorf("trouble is not first: %q", rows)
	}
	short, long := text(paper{screen: screen{width: 80}}), text(paper{screen: screen{width: 80}, all: true})
	if n := strings.Count(short, "\n"); n > 25+7 || !strings.Contains(short, "s07      nobody") || !strings.Contains(short, "n2 failed here, program failed.") ||
		!strings.Contains(short, "25 services: 1 active nowhere, 24 active and ok. To see only what is wrong:\n    understudy status --failed\n") {
		t.Errorf("%d lines:\n%s", n, short)
	}
	if n := strings.Count(long, "\n"); n < 50 {
		t.Errorf("%d lines with all nodes:\n%s", n, long)
	}
}

func TestDrainedNodesAreShownWhereThereIsNoService(t *testing.T) {
	s := control.Status{
		Nodes:   []control.NodeStatus{{Node: "n1"}},
		Drained: []control.DrainedNode{{Node: "n1", Words: "drained by me 3m0s ago: new disks"}, {Node: "n2", Words: "drained"}, {Node: "n2; reboot", Words: "drained"}},
	}
	var b strings.Builder
	must.OK(t, writeStatus(&b, paper{screen: screen{width: 120}, flags: []string{"--zk zk1"}}, s, now))
	for _, want := range []string{
		"n1 is drained by me 3m0s ago: new disks. To let it take services again:\n    understudy undrain n1 --zk zk1\n",
		"n2, which is not connected, is drained.", "undrain n2 --zk zk1\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "undrain n2;") {
		t.Errorf("a command with a stranger's name:\n%s", b.String())
	}
}
