package page

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
)

const second = int64(time.Second)

func played() *history.History {
	run := func(service, node string, token, first, last int64) history.Run {
		return history.Run{Run: kit.Run{Node: node, Token: token, First: first, Last: last}, Service: service}
	}
	return &history.History{
		Setup: history.Setup{Seed: 42, Nodes: []string{"a", "b"}, Services: []string{"db", "web"}}, Ended: 130 * second,
		Runs: []history.Run{
			run("db", "a", 1, second, 20*second), run("web", "b", 2, second, 130*second), run("db", "b", 3, 65*second, 130*second),
		},
		Bursts: []history.Burst{{
			Faults: []history.Fault{{Kind: "cable <pulled>", Target: "a", Node: "a", From: 18 * second, To: 64 * second}},
			Healed: 64 * second, Well: 66 * second,
		}},
		Roles: []history.Role{{At: 63 * second, Node: "b", Service: "db", To: "fencing"}, {At: 65 * second, Node: "b", Service: "db", To: "active"}},
	}
}

func render(t *testing.T, wrong ...history.Violation) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, played(), wrong); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageTellsWhatHappened(t *testing.T) {
	page := render(t)
	for _, want := range []string{
		"0 overlaps", "seed 42", "cable &lt;pulled&gt;: a, 46.0 s", `nobody ran db for 45.0 s`, `class="fencing"`, `class="healing"`, "0:00 to 1:00",
		"2:00 to 3:00",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if n := strings.Count(page, "<details id="); n != 3 {
		t.Errorf("%d minutes instead of 3", n)
	}
}

func TestPageTellsViolationsFirst(t *testing.T) {
	page := render(t, history.Violation{What: "overlap", Service: "db", At: 65 * second, Text: "two <at> once"})
	said, table := strings.Index(page, "two &lt;at&gt; once"), strings.Index(page, "The whole run")
	if said < 0 || said > table || strings.Contains(page, "0 overlaps") || !strings.Contains(page, `href="#m1"`) {
		t.Error("the violation is not at the top, with a link to its minute")
	}
}

// A page that is kept for years must not need anything from elsewhere.
func TestPageNeedsNothingElse(t *testing.T) {
	if found := regexp.MustCompile(`(?i)(https?:|src=|<link|@import|url\()[^>]*`).FindString(render(t)); found != "" {
		t.Errorf("the page refers to something: %s", found)
	}
}
