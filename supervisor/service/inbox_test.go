package service

import (
	"testing"

	"understudy/election"
	"understudy/supervisor/service/role"
)

// The strongest obstacle counts, and what is not known yet counts as an obstacle.
func TestTheStrongestBarCounts(t *testing.T) {
	b := obstacles{prechecked: true, hasAgents: true}
	for _, step := range []struct {
		want role.Obstacle
		why  string
		next func()
	}{
		{role.Ineligible, election.NotEligible, func() { b.eligible = true }},
		{role.OrdersUnknown, "", func() { b.asked, b.control.Paused, b.control.By = true, true, "me" }},
		{role.Paused, "paused by me", func() { b.control.Paused = false; b.drained = &election.Drained{By: "me", Why: "new disks"} }},
		{role.Drained, "drained by me: new disks", func() { b.forced = true }},
		{role.NoObstacle, "", func() { b.drained, b.forced, b.guarded = nil, false, true }},
		{role.PrecheckUnknown, "", func() { b.looked = true; b.precheck = fitness{true, "disk full"} }},
		{role.PrecheckUnknown, "", func() { b.lack = fitness{true, "there is no user www"} }},
		{role.CannotStart, "it could not start here: there is no user www", func() { b.lack.why = "" }},
		{role.PrecheckUnknown, "", func() { b.agents = fitness{true, "no such disk"} }},
		{role.CannotStart, "it could not start here: no such disk", func() { b.agents.why = "" }},
		{role.CannotStart, "precheck: disk full", func() { b.precheck.why = "" }},
		{role.WatchdogUnknown, "", func() { b.watchdog = fitness{true, "busy"} }},
		{role.WatchdogUnarmed, "watchdog: busy", func() { b.watchdog.why = "" }},
		{role.NoObstacle, "", func() {}},
	} {
		if obstacle, why := b.strongest(); obstacle != step.want || why != step.why {
			t.Errorf("%v, %q; want %v, %q", obstacle, why, step.want, step.why)
		}
		step.next()
	}
}
