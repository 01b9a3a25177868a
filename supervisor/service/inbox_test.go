package service

import (
	"testing"

	"understudy/election"
	"understudy/supervisor/service/role"
)

// The strongest bar counts, and what is not known yet bars as well.
func TestTheStrongestBarCounts(t *testing.T) {
	b := barrier{prechecked: true, hasAgents: true}
	for _, step := range []struct {
		want role.Bar
		why  string
		next func()
	}{
		{role.Ineligible, election.NotEligible, func() { b.eligible = true }},
		{role.Unasked, "", func() { b.asked, b.control.Paused, b.control.By = true, true, "me" }},
		{role.Paused, "paused by me", func() { b.control.Paused = false; b.drained = &election.Drained{By: "me", Why: "new disks"} }},
		{role.Drained, "drained by me: new disks", func() { b.forced = true }},
		{role.NoBar, "", func() { b.drained, b.forced, b.guarded = nil, false, true }},
		{role.Untested, "", func() { b.looked = true; b.precheck = fitness{true, "disk full"} }},
		{role.Untested, "", func() { b.lack = fitness{true, "there is no user www"} }},
		{role.Unfit, "it could not start here: there is no user www", func() { b.lack.why = "" }},
		{role.Untested, "", func() { b.agents = fitness{true, "no such disk"} }},
		{role.Unfit, "it could not start here: no such disk", func() { b.agents.why = "" }},
		{role.Unfit, "precheck: disk full", func() { b.precheck.why = "" }},
		{role.WatchdogUnknown, "", func() { b.watchdog = fitness{true, "busy"} }},
		{role.WatchdogUnarmed, "watchdog: busy", func() { b.watchdog.why = "" }},
		{role.NoBar, "", func() {}},
	} {
		if bar, why := b.bar(); bar != step.want || why != step.why {
			t.Errorf("%v, %q; want %v, %q", bar, why, step.want, step.why)
		}
		step.next()
	}
}
