package unit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

type answer struct{ err error }

func (a answer) Check(context.Context) error { return a.err }

// What another unit's program answers is no health of ours. Who answers is looked for until it is ours, and then no more.
func TestAnAnswerOfAnotherUnitCountsAsAFailure(t *testing.T) {
	asked, who := 0, "nginx (pid 7, nginx.service)"
	a := &ownAnswer{Checker: answer{}, address: "127.0.0.1:80", since: time.Hour, who: func(address string, since time.Duration) string {
		if asked++; address != "127.0.0.1:80" || since != time.Hour {
			t.Errorf("asked about %s since %v", address, since)
		}
		return who
	}}
	for range 2 {
		if err := a.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1:80 is answered by "+who) {
			t.Errorf("got %v", err)
		}
	}
	who = ""
	for range 3 {
		must.Report(t, a.Check(t.Context()))
	}
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
	ill := &ownAnswer{Checker: answer{errors.New("refused")}, since: time.Hour, who: func(string, time.Duration) string { t.Error("asked"); return "" }}
	if err := ill.Check(t.Context()); err == nil || err.Error() != "refused" {
		t.Error(err)
	}
}
