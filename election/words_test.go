package election

import (
	"encoding/json"
	"testing"
)

// Other versions, HTTP clients and alerts know these words.
func TestWordsOnTheWireStayWhatTheyAre(t *testing.T) {
	text, err := json.Marshal([]any{
		Roles(), []Health{HealthOK, HealthStarting, HealthFailing, HealthUnfit, HealthFailed},
		[]Reason{
			StopAsked, SwitchAsked, PreferredBack, ChildOnce, ChildDone, ChildFailed, HookFailed, LockLost, LeaseEnding, SessionExpired,
			LostTo(NoBreadcrumb), LostTo("grace, after exec failed"),
		},
		NoBreadcrumb, NotEligible, NeedsRestart("http:"),
	})
	want := `[["offline","standby","claiming","fencing","active","stopping","failed","paused"],["ok","starting","failing","unfit","failed"],` +
		`["stop asked","switchover","preferred node back","child ran once","child done","child failed","on_active failed","lock lost",` +
		`"lease ending","session expired","supervisor lost; its child was known to be dead","lost; fenced: grace, after exec failed"],` +
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
