package service

import (
	"strings"
	"testing"

	"understudy/election"
)

// A pause does not hide that a program has left its cgroup.
func TestAPauseIsToldBesideAProgramThatHasLeftItsCgroup(t *testing.T) {
	w := wellness{news: newNews()}
	w.strayed("pid 7 is astray")
	if health, why := w.of(election.Control{Paused: true, By: "me"}); health != election.HealthOK || !strings.Contains(why, "paused by me") || !strings.Contains(why, "astray") {
		t.Errorf("%s: %s", health, why)
	}
}
