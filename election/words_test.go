package election

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
)

// Other versions, HTTP clients and alerts know these words.
func TestWordsOnTheWireStayWhatTheyAre(t *testing.T) {
	text, err := json.Marshal([]any{
		Roles(), []Health{HealthOK, HealthStarting, HealthFailing, HealthUnfit, HealthFailed},
		[]Reason{
			StopAsked, SwitchAsked, RestartAsked, PreferredBack, ChildOnce, ChildDone, ChildFailed, OutOfMemory, HookFailed, LockLost, LeaseEnding, SessionExpired,
			LostTo(NoBreadcrumb), LostTo("grace, after exec failed"),
		},
		NoBreadcrumb, NotEligible, NeedsRestart("http:"),
	})
	want := `[["offline","standby","claiming","fencing","active","stopping","failed","paused"],["ok","starting","failing","unfit","failed"],` +
		`["stop asked","switchover","restart","preferred node back","program ran once","program done","program failed","out of memory","on_active failed","lock lost",` +
		`"lease ending","session expired","supervisor lost; its program was known to be dead","lost; fenced: grace, after exec failed"],` +
		`"no breadcrumb was left","eligible: false in its config","http: changed: restart understudy to take that up"]`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

func TestAnEndIsPlannedOnlyIfItsWordIsKnown(t *testing.T) {
	for reason, want := range map[Reason]bool{
		StopAsked: true, SwitchAsked: true, PreferredBack: true, ChildOnce: true, "stop asked; by somebody": true,
		ChildFailed: false, LostTo(NoBreadcrumb): false, LostTo("grace"): false, ReasonUnknown: false, "": false, "stop": false, "stop asked by somebody": false,
	} {
		if reason.Planned() != want {
			t.Errorf("%q: %v", reason, !want)
		}
	}
	if got := LostTo("grace").Word(); got != Lost {
		t.Errorf("%q", got)
	}
}

// A client without credentials, or another version, may write an order with a reason of 900 kB. Each node logs and shows it.
func TestWhatAnOrderSaysIsCut(t *testing.T) {
	for _, long := range []string{strings.Repeat("x", 900<<10), strings.Repeat("é漢", 300<<10)} {
		order := Order{ID: "1", By: long, Failed: long}
		c := Control{
			Paused: true, Why: long, By: long, Switchover: &Switchover{Order: order, From: "a", To: "b"}, Restart: &order, Reload: &order,
			Confirmed: &Confirmed{Node: "n", By: long},
		}
		got := ParseControl(encode(c))
		d := ReadDrained(Drained{By: long, Why: long}.Encode(), zk.Stat{})
		for _, text := range []string{string(encode(got)), got.Words(), string(d.Encode()), d.Words()} {
			if len(text) > 12*LongestReason || !utf8.ValidString(text) {
				t.Errorf("%d bytes: %.20q", len(text), text)
			}
		}
		if !strings.HasPrefix(got.Why, long[:900]) || !strings.HasSuffix(got.Why, "...") {
			t.Errorf("%.20q", got.Why)
		}
		if got.Switchover.To != "b" || got.Restart.ID != "1" {
			t.Error("the orders are others")
		}
	}
	if c := ParseControl(encode(Control{Why: "new disks", By: "me"})); c.Why != "new disks" || c.By != "me" {
		t.Errorf("%+v", c)
	}
}
