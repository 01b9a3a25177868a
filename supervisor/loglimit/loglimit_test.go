package loglimit

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestALineIsLoggedOnceAWindowAndTellsWhatWasLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		l := Line{Log: hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true}), Words: "turned away", Window: 10 * time.Second}
		says := func(want string) {
			t.Helper()
			if got := log.String(); got != want {
				t.Errorf("%q, not %q", got, want)
			}
			log.Reset()
		}
		l.Say("a", "why", "late")
		says("[WARN]  turned away: from=a why=late\n")
		for i := range 100 {
			l.Say(fmt.Sprint("b", i%2))
		}
		l.Tell()
		says("")
		time.Sleep(10 * time.Second)
		l.Say("c")
		says("[WARN]  turned away: from=c others_before=100 from_others=[\"b0\", \"b1\"]\n")
		for i := range 100 {
			l.Say(fmt.Sprint("d", i))
		}
		time.Sleep(10 * time.Second)
		l.Tell()
		says("[WARN]  turned away: others_before=100 from_others=[\"d0\", \"d1\", \"d2\", \"d3\", \"d4\", \"d5\", \"d6\", \"d7\"]\n")
		l.Say("e")
		l.End()
		says("[WARN]  turned away: others_before=1 from_others=[\"e\"]\n")
		l.End()
		time.Sleep(10 * time.Second)
		l.Tell()
		says("")
	})
}
