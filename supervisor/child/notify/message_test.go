package notify

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestMessagesAreRead(t *testing.T) {
	for text, want := range map[string]Message{
		"READY=1":                            {Ready: true},
		"READY=1\nSTATUS=up and running\n":   {Ready: true, HasStatus: true, Status: "up and running"},
		"RELOADING=1\nSTOPPING=1\nBARRIER=1": {},
		"WATCHDOG=1\nMAINPID=77":             {Watchdog: true},
		"WATCHDOG=trigger":                   {},
		"X_UNDERSTUDY_CLAIMED=1":             {Claimed: true},
		"X_UNDERSTUDY_CLAIMED=0":             {},
		"READY=0\nREADY\n=1\n\n\x00":         {},
		"STATUS=":                            {HasStatus: true},
		"STATUS=a\x1b[31mb\tc\xffd":          {HasStatus: true, Status: "a [31mb c?d"},
		"STATUS=" + strings.Repeat("é", 600): {HasStatus: true, Status: strings.Repeat("é", 512)},
		"MAINPID=-1\nX=y=z":                  {},
	} {
		if diff := cmp.Diff(want, Parse([]byte(text))); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte("READY=1\nSTATUS=x\nMAINPID=1\nERRNO=2\nBARRIER=1"))
	f.Add([]byte("STATUS=\xff\xfe\x00\n=\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := Parse(raw)
		if len(m.Status) > maxStatus || !utf8.ValidString(m.Status) || strings.ContainsAny(m.Status, "\n\x00\x1b") {
			t.Errorf("%q: %+v", raw, m)
		}
	})
}
