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
		rows := explained(string(page), text)
		if len(rows) == 0 || !strings.HasPrefix(rows[0].what, want) || rows[0].means == "" || rows[0].do == "" || strings.Contains(rows[0].do, "](") {
			t.Errorf("%s: %+v", text, rows)
		}
	}
	for _, text := range []string{"banana", "", "the and is"} {
		if rows := explained(string(page), text); len(rows) > 0 {
			t.Errorf("%q: %+v", text, rows)
		}
	}
	for line := range strings.Lines(string(page)) { // no row is lost for its form
		if what, is := strings.CutPrefix(line, "| `"); is {
			literal, _, _ := strings.Cut(what, "`")
			if len(telling.FindAllString(literal, -1)) > 0 && len(explained(string(page), literal)) == 0 {
				t.Errorf("not found: %s", literal)
			}
		}
	}
	if code, _, errs := says(t, "explain"); code != 2 || !strings.Contains(errs, "takes words") {
		t.Errorf("nothing to explain: %d, %q", code, errs)
	}
}
