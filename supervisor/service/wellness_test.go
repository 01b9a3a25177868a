package service

import (
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/control"
)

// A pause does not hide that a program has left its cgroup.
func TestAPauseIsToldBesideAProgramThatHasLeftItsCgroup(t *testing.T) {
	w := wellness{news: newNews()}
	w.strayed("pid 7 is astray")
	if health, why := w.of(election.Control{Paused: true, By: "me"}); health != election.HealthOK || !strings.Contains(why, "paused by me") || !strings.Contains(why, "astray") {
		t.Errorf("%s: %s", health, why)
	}
}

// That output is lost is announced when it begins, and when it ends.
func TestThatOutputIsLostIsAnnounced(t *testing.T) {
	nothing := func() string { return "" }
	w := view{
		observer: untold{}, conf: &Conf{}, mem: &memory{}, unprovedTree: &unprovedTree{}, pendingEffects: nothing, fails: nothing, intents: &intents{},
		shown: shownRole{role: election.RoleActive}, wellness: wellness{news: newNews()}, announcer: newAnnouncer(hclog.NewNullLogger(), func() {}),
	}
	w.announce()
	<-w.announcer.newest
	for _, why := range []string{"/var/log/x: no space left on device", ""} {
		w.wellness.losesOutput(why)
		w.announceChange()
		select {
		case m := <-w.announcer.newest:
			if m.Unlogged != why || m.Health != election.HealthOK {
				t.Errorf("%q: %+v", why, m)
			}
		default:
			t.Errorf("%q is not announced", why)
		}
	}
}

type untold struct{ Observer }

func (untold) State(control.LocalStatus) {}
