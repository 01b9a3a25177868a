package service

import (
	"syscall"
	"testing"

	"understudy/supervisor/child"
	"understudy/supervisor/unit"
)

func TestWhatAReloadHasEndedIsNamed(t *testing.T) {
	ended := func(s child.ExitStatus) error { return &unit.Ended{Name: "main", Status: s} }
	for want, why := range map[string]error{
		"": errRestart,
		"web ended by SIGHUP within 1s; it has no handler for its reload signal: set reload_signal, or use restart": ended(child.ExitStatus{Code: 129, Signal: syscall.SIGHUP}),
		"web ended within 1s of its reload signal, SIGHUP: exit code 2":                                             ended(child.ExitStatus{Code: 2}),
	} {
		if got := failedReload(why, "web", syscall.SIGHUP); got != want {
			t.Errorf("%v: %q, not %q", why, got, want)
		}
	}
	if failedReload(nil, "web", syscall.SIGHUP) != "" {
		t.Error("a program that lives has failed")
	}
}
