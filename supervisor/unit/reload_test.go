package unit

import (
	"syscall"
	"testing"

	"understudy/supervisor/child"
)

func TestWhatAReloadHasEndedIsNamed(t *testing.T) {
	ended := func(s child.ExitStatus) error { return &Ended{Name: "main", Status: s} }
	for want, why := range map[string]error{
		"": ErrChanged,
		"web ended by SIGHUP within 1s; it has no handler for its reload signal: set reload_signal, or use restart": ended(child.ExitStatus{Code: 129, Signal: syscall.SIGHUP}),
		"web ended within 1s of its reload signal, SIGHUP: exit code 2":                                             ended(child.ExitStatus{Code: 2}),
	} {
		got := ""
		if failed := FailedReload(why, "web", syscall.SIGHUP); failed != nil {
			got = failed.Error()
		}
		if got != want {
			t.Errorf("%v: %q, not %q", why, got, want)
		}
	}
	if FailedReload(nil, "web", syscall.SIGHUP) != nil {
		t.Error("a program that lives has failed")
	}
}
