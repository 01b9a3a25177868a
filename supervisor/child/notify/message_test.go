package notify

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMessagesAreRead(t *testing.T) {
	for text, want := range map[string]Message{
		"READY=1":                            {Ready: true},
		"READY=1\nSTATUS=up and running\n":   {Ready: true},
		"RELOADING=1\nSTOPPING=1\nBARRIER=1": {},
		"X_UNDERSTUDY_CLAIMED=1":             {Claimed: true},
		"X_UNDERSTUDY_CLAIMED=0":             {},
		"X_UNDERSTUDY_LOST=no carrier":       {Lost: new("no carrier")},
		"X_UNDERSTUDY_LOST=":                 {Lost: new("")},
		"X_UNDERSTUDY_WHY=it is=gone\xff":    {Why: "it is=gone?"},
		"READY=0\nREADY\n=1\n\n\x00":         {},
		"READY=1\nX_UNDERSTUDY_CLAIMED=1\n":  {Ready: true, Claimed: true},
		"STATUS=READY=1\x1b[31m\xff":         {},
		"MAINPID=-1\nX=y=z":                  {},
	} {
		if diff := cmp.Diff(want, Parse([]byte(text))); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}
