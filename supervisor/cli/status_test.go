package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"understudy/election"
	"understudy/supervisor/control"
)

var now = time.Date(2026, 7, 1, 10, 3, 12, 0, time.UTC)

func at(before time.Duration) *time.Time {
	t := now.Add(-before)
	return &t
}

// staged is a cluster in which everything happens that status has words for.
func staged(prefix string) control.Status {
	member := func(node string, role election.Role, why string, ago time.Duration) control.Member {
		health := election.HealthOK
		if role == election.RoleFailed {
			health = election.HealthFailed
		}
		return control.Member{Node: prefix + node, Host: "h", Role: role, Health: health, Why: why, Since: at(ago)}
	}
	s := control.Status{Nodes: []control.Node{}, Services: []control.Service{
		{
			Service: prefix + "cache", Active: prefix + "n1", Lock: prefix + "n1", Token: 4294967301, Since: at(192 * time.Second),
			Members: []control.Member{member("n1", "active", "", 192*time.Second), member("n2", "standby", "", 26*time.Hour)},
		},
		{
			Service: prefix + "db", Lock: prefix + "n2", Fencing: &control.Fencing{Node: prefix + "n1", By: prefix + "n2", Since: at(4 * time.Second)},
			Members: []control.Member{member("n2", "fencing", "", 4*time.Second)},
		},
		{Service: prefix + "idle", Members: []control.Member{}},
		{
			Service: prefix + "mail", Fencing: &control.Fencing{Node: prefix + "n3"},
			Members: []control.Member{member("n2", "failed", "former active may be alive", 61*time.Second)},
		},
		{Service: prefix + "news", Fencing: &control.Fencing{Node: prefix + "n3"}, Members: []control.Member{}},
		{
			Service: prefix + "solo", Active: prefix + "n1", Lock: prefix + "n1", Token: 7,
			Members: []control.Member{member("n1", "active", "", time.Hour), {Node: prefix + "n2", Role: "standby", Health: "unfit", Why: "eligible: false in its config", Never: true}},
		},
		{Service: prefix + "sole", Active: prefix + "n1", Lock: prefix + "n1", Token: 8, Members: []control.Member{member("n1", "active", "", time.Hour)},
			Kept: []control.Kept{{Path: "/understudy/services/sole/ActiveStandbyElectorLock", Node: prefix + "n1", Session: "0x7", Server: "zk1:2181"}}},
		{
			Service: prefix + "still", Active: prefix + "n1", Handing: &control.Handing{From: prefix + "n1", By: "me@op"}, Lock: prefix + "n1", Token: 9, Paused: true, Order: "paused by me",
			Members: []control.Member{member("n1", "active", "paused by me", time.Hour), member("n2", "paused", "paused by me", time.Hour)},
		},
		{Service: prefix + "web", Members: []control.Member{member("n1", "standby", "", 0)}},
	}}
	for i := range s.Services {
		s.Services[i].Faults = control.Faults(s.Services[i])
	}
	return s
}

func TestStatusTellsWhoIsActiveAndWhatMendsWhatIsWrong(t *testing.T) {
	var b bytes.Buffer
	if err := writeStatus(&b, screen{width: 80}, staged(""), now, []string{"--zk zk1:2181"}); err != nil {
		t.Fatal(err)
	}
	want := `SERVICE  NODE    ROLE     SINCE  HEALTH       TOKEN
cache    n1      active   3m12s  ok      4294967301
         n2      standby  1d02h  ok
db       n2      fencing     4s  ok
  Fencing n1: n2 holds the lock and starts nothing while the child of n1 may be
  running. If you know that its child is dead:
    understudy fence confirm db --node n1 --zk zk1:2181
idle     nobody
  No node has it: it was removed, or all its supervisors are stopped.
mail     n2      failed   1m01s  failed
  n2 has given up, former active may be alive.
  Nobody is active: the child of n3 may be running, and nobody holds the lock.
  If you know that its child is dead:
    understudy fence confirm mail --node n3 --zk zk1:2181
news     nobody
  n3 was active last, and its child may be running: the next active node fences
  it first.
solo     n1      active   1h00m  ok               7
         n2      standby      -  unfit
  n2: eligible: false in its config
  No standby: a failure of n1 would stop it. None of the other nodes can take it
  now.
sole     n1      active   1h00m  ok               8
  Session 0x7 of n1 has sent no heartbeat for two session timeouts, but
  ZooKeeper keeps its znode /understudy/services/sole/ActiveStandbyElectorLock,
  which blocks other nodes. If this lasts, delete it:
    zkCli.sh -server zk1:2181 \
      delete /understudy/services/sole/ActiveStandbyElectorLock
  No standby: a failure of n1 would stop it. Run it on another node too:
    understudy run --service sole --node NODE --zk zk1:2181 -- COMMAND
still    n1      active   1h00m  ok               9
         n2      paused   1h00m  ok
  me@op has ordered that n1 give it to the first node that can.
  Nobody is promoted: paused by me. To end that:
    understudy resume still --zk zk1:2181
web      n1      standby     0s  ok
  Nobody is active yet: a standby is about to take it.
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLinesFitTheScreenWhateverNamesAreLike(t *testing.T) {
	long := strings.Repeat("long-", 11)
	for _, width := range []int{80, 132} {
		var b bytes.Buffer
		if err := writeStatus(&b, screen{width: width}, staged(long), now, []string{"--zk zk1:2181,zk2:2181,zk3:2181", "--root /understudy"}); err != nil {
			t.Fatal(err)
		}
		if err := writeHistory(&b, screen{width: width}, past(long), now, true); err != nil {
			t.Fatal(err)
		}
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

func TestTheStatusInJSONHasTheSameFactsUnderStableKeys(t *testing.T) {
	var b bytes.Buffer
	s := staged("")
	if err := writeJSON(&b, s); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Services []map[string]any
		Nodes    []any
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Nodes == nil || len(got.Services) != len(s.Services) {
		t.Fatalf("got %s", b.String())
	}
	for _, v := range got.Services {
		for _, key := range []string{"service", "active", "host", "pid", "since", "token", "lock", "fencing", "switchover", "members", "faults"} {
			if _, ok := v[key]; !ok {
				t.Errorf("%v has no %q", v["service"], key)
			}
		}
	}
	member := got.Services[3]["members"].([]any)[0].(map[string]any)
	if member["node"] != "n2" || member["role"] != "failed" || member["health"] != "failed" || member["why"] == "" || member["since"] == nil {
		t.Errorf("got member %v", member)
	}
}

func TestAClusterWithoutServicesSaysHowToStartOne(t *testing.T) {
	var b bytes.Buffer
	if err := writeStatus(&b, screen{width: 80}, control.Status{}, now, nil); err != nil || !strings.Contains(b.String(), "understudy run") {
		t.Errorf("got %q, %v", b.String(), err)
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
	s := control.Status{Services: []control.Service{{
		Service: "db", Active: "n1", Token: 1, Lock: "n1", Paused: true, Order: "paused by " + evil, Failsafe: []string{evil},
		Members: []control.Member{{Node: "n1", Role: evil, Health: evil, Why: evil, Since: at(time.Hour)}},
	}, {
		Service: "safe", Active: "n1", Failsafe: []string{"n2", evil}, Members: []control.Member{{Node: "n1", Role: "active"}},
	}, {
		Service: "web", Fencing: &control.Fencing{Node: "x; reboot", By: "n2"}, Members: []control.Member{{Node: "n2", Role: "fencing"}},
	}}, Nodes: []control.Node{{Node: "n1", Fault: evil, Warnings: []string{evil}}}}
	for i := range s.Services {
		s.Services[i].Faults = control.Faults(s.Services[i])
	}
	var b bytes.Buffer
	if err := writeStatus(&b, screen{width: 80}, s, now, nil); err != nil {
		t.Fatal(err)
	}
	if err := writeHistory(&b, screen{width: 80}, []control.Activation{{Service: "db", Node: evil, Reason: evil, Fenced: evil}}, now, true); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\x07\u009b\u202e") {
		t.Errorf("orders for a terminal:\n%q", b.String())
	}
	var asJSON bytes.Buffer
	var back struct{ Nodes []control.Node }
	if err := errors.Join(writeJSON(&asJSON, s), json.Unmarshal(asJSON.Bytes(), &back)); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(asJSON.String(), "\x1b\x07\u009b\u202e") || back.Nodes[0].Fault != evil {
		t.Errorf("orders for a terminal, or another fault than there is:\n%q", asJSON.String())
	}
	if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), "by the promises of n2, x") {
		t.Errorf("it does not say whose promises are counted on:\n%s", b.String())
	}
	if strings.Contains(b.String(), "\nfake") || strings.Contains(b.String(), "--node x; reboot") {
		t.Errorf("not only text:\n%s", b.String())
	}
}
