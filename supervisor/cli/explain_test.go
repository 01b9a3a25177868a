package cli

import (
	"os"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// The rows are those of the page that the binary has.
func TestALineOfTheLogIsExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	must.OK(t, err)
	for text, want := range map[string]string{
		`2026-11-29T22:25:57Z [ERROR] understudy: takeover blocked: the previous node's program is not proved dead: service=db`:                      "`takeover blocked: ",
		"DOWN: no node can run it now. a cannot take it":                                                                                             "`DOWN: no node can run it now`",
		"the program is restarted all the time":                                                                                                      "the program is restarted repeatedly",
		"No node is active yet, because no copy is promoted. The reason on a is: 1 of 2 copies have reported their position (b: it has no position)": "`copies have reported their position`",
		"n3: follower (it has no position), position 123000 3m12s ago":                                                                               "`it has no position`",
		"c: unknown (it has reported nothing)":                                                                                                       "`it has reported nothing`",
		"b: it has lost data: its position is 10, and was 12":                                                                                        "`it has lost data`",
		"the copy on b may have newer data than that on a: it may have followed the lost primary":                                                    "`may have newer data than that on`",
		"it is stopped until another copy is promoted: reclone has not succeeded":                                                                    "`it is stopped until another",
		"b is unfit: its copy cannot follow the primary: follow: exit code 1":                                                                        "`its copy cannot follow",

		"lost with its supervisor or host":                         "`lost with its supervisor or host`",
		"db-1  2s  3ms  supervisor lost  -":                        "`supervisor lost`",
		"not reachable for 2 of 2: n2, n3":                         "`not reachable`",
		"switchover":                                               "`switchover`",
		"claiming":                                                 "`claiming`",
		"status=\"killed by SIGKILL\"":                             "`killed by SIGKILL`",
		"status=\"killed by SIGKILL, out of memory\"":              "`killed by SIGKILL`",
		"on the active node the program is restarted all the time": "the program is restarted repeatedly",
		"no zookeeper server answers":                              "`no ZooKeeper server of ... answers`",
	} {
		rows, _ := explained(string(page), text)
		if len(rows) == 0 || !strings.HasPrefix(rows[0].what, want) || rows[0].means == "" || rows[0].do == "" || strings.Contains(rows[0].do, "](") {
			t.Errorf("%s: %+v", text, rows)
		}
	}
	for _, text := range []string{"banana", "", "the and is"} {
		if rows, _ := explained(string(page), text); len(rows) > 0 {
			t.Errorf("%q: %+v", text, rows)
		}
	}
	for line := range strings.Lines(string(page)) { // no row is lost for its form
		if what, is := strings.CutPrefix(line, "| `"); is {
			literal, _, _ := strings.Cut(what, "`")
			if rows, sure := explained(string(page), literal); len(telling.FindAllString(literal, -1)) > 0 && (len(rows) == 0 || !sure) {
				t.Errorf("not found: %s", literal)
			}
		}
	}
	if code, _, errs := says(t, "explain"); code != 2 || !strings.Contains(errs, "takes words") {
		t.Errorf("nothing to explain: %d, %q", code, errs)
	}
}

// What a row has word for word is its advice. Where only some words match, it is not given as if it was certain.
func TestOnlyWhatFitsExactlyIsCertain(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	must.OK(t, err)
	for text, want := range map[string]string{ // the row, which is certain
		"h2 failed here 6s ago, the previous node's program may be alive: exec failed":                      "a takeover is blocked",
		"No node runs it, because it is stopped by root@vm.":                                                "`it is stopped by`",
		"because its tree on this machine is dead":                                                          "`its tree on this machine is dead`",
		"its guardians gave the lock back":                                                                  "`its tree on this machine is dead`",
		"waiting for the previous session of this node to end, or for another supervisor that has its name": "`waiting for the previous session`",
		"another program writes to this log":                                                                "`cannot write a log",
		"another node has the lock":                                                                         "`another node has the lock`",
		"stop asked":                                                                                        "`stop asked`",
		"permission denied":                                                                                 "`permission denied`",
		"program exited: status=exit code 3":                                                                "`program exited`",
		"failed":                                                                                            "`failed`",
		"no standby":                                                                                        "`No standby: a failure",
		"drained":                                                                                           "`drained`",
		"f, g are standby, drained by root":                                                                 "`drained`",
		"gone":                                                                                              "`gone`",
		"h7 is gone, last seen 5s ago":                                                                      "`n2 is gone",
		"h7 keeps its previous config: u.yaml:1:1: x: unknown key":                                          "`n1 keeps its",
		"fork/exec ./x: exec format error":                                                                  "`exec format error`",
		"the service is not ready within 5s":                                                                "`is unhealthy`, `is not ready within`",
		"a is unhealthy":                                                                                    "`is unhealthy`",
		"No node is active yet":                                                                             "`another node has the lock`",
		"the leases of the nodes differ":                                                                    "`the leases of the nodes differ`",
		"grace, after agent failed":                                                                         "`grace, after`",
		"not undone: prep (exit code 1)":                                                                    "`a oneshot is not undone`",
		"ZooKeeper has acknowledged no write for too long":                                                  "`ZooKeeper acknowledges nothing",
	} {
		rows, sure := explained(string(page), text)
		if len(rows) == 0 || !sure || !strings.HasPrefix(rows[0].what, want) || strings.Contains(rows[0].means, "signal ended it") {
			t.Errorf("%s: %v, %+v", text, sure, rows)
		}
	}
	for _, text := range []string{"another node writes to this supervisor", "the lock is back at its guardians", "the program of this node exited"} {
		if rows, sure := explained(string(page), text); sure || len(rows) > 1 {
			t.Errorf("%s: certainly %+v", text, rows)
		}
	}
	cmd, out := explainCommand(string(page)), new(strings.Builder)
	cmd.SetArgs([]string{"another supervisor of this node"})
	cmd.SetOut(out)
	if err := cmd.Execute(); err != nil || !strings.HasPrefix(out.String(), "No row fits exactly. The closest:\n\n") {
		t.Errorf("%v: %s", err, out)
	}
}
