package election

import (
	"strings"
	"testing"
)

// Warnings come from files' names, and from znodes that a stranger may have written.
func TestWarningsAreFewShortPrintableLines(t *testing.T) {
	list := make([]string, 1000)
	for i := range list {
		list[i] = strings.Repeat("\x1b]\u009b\u202e\n\xff", 1000)
	}
	got := Bounded(list)
	if len(got) != 5 || !strings.HasPrefix(got[4], "and 996 more") {
		t.Errorf("%d lines, the last is %q", len(got), got[len(got)-1])
	}
	for _, w := range got {
		if len(w) > longestWarning+3 || strings.ContainsAny(w, "\x1b\u009b\u202e\n\r\ufffd") {
			t.Errorf("%q", w)
		}
	}
	if got := Bounded(strings.Split(strings.Repeat("x,", 100), ",")); len(got) != mostWarnings+1 || got[mostWarnings] != "and 93 more: understudy check shows all" {
		t.Errorf("%q", got)
	}
	if got := Bounded([]string{"chmod 600 /etc/Schlüssel"}); len(got) != 1 || got[0] != "chmod 600 /etc/Schlüssel" {
		t.Errorf("%q", got)
	}
}
