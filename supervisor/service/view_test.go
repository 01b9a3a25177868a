package service

import (
	"strings"
	"testing"

	"understudy/election"
)

// A pause and a program that has left its cgroup are both told.
func TestAPauseIsToldBesideAProgramThatHasLeftItsCgroup(t *testing.T) {
	v := made(t, Conf{}, nil)
	v.inbox.programs.astray = "pid 7 is astray"
	v.inbox.wishes.Control = election.Control{Paused: true, By: "me"}
	if health, why := v.wellness(); health != election.HealthOK || !strings.Contains(why, "paused by me") || !strings.Contains(why, "astray") {
		t.Errorf("%s: %s", health, why)
	}
}
