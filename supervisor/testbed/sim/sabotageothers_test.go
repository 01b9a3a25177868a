package sim

import "slices"

// Of what others do beside Understudy: name servers, tools of a host, those who change an ensemble.
var sabotagesOfOthers = []sabotage{
	{"wait for the name server although an address is known", []change{
		{"election/lookup.go", "	if known, _ := n.get(host); len(known) > 0 {\n		enough", "	if known, _ := n.get(host); len(known) < 0 {\n		enough"},
		names, calms,
	}},
	{"the next image does not know the addresses of the previous one", []change{
		{"election/carry.go", "	cfg.resolver().keep(c.Addresses)\n", "	_ = cfg.resolver().keep\n"},
		names, calms, upgrades,
	}},
	{"do not search for what was seen in a cgroup and lives elsewhere", []change{
		{"supervisor/guard/kill.go", "		again, err := hands.Search(ctx)\n", "		again, err := false, ctx.Err()\n"},
		moves,
	}},
	{"look only once for processes in other cgroups", []change{
		{"supervisor/unit/astray.go", "		if w.findStraysNow(ctx) {\n", "		w.findStraysNow(ctx)\n		if <-ctx.Done(); ctx.Err() == nil {\n"},
		moves,
	}},
	{"undo an effect beside a process in another cgroup", []change{
		{"supervisor/unit/stop.go", "				astray := s.watch.lost.Load()\n", "				astray := s.watch.lost.Load() && s.keeps\n"},
		moves, effects,
	}},
	{"leave an undo that the end of a lease interrupted to the next session", slices.Concat(laggards, []change{
		{"supervisor/service/end.go", "	if wait.Closed(t.s.Ended()) || !wait.Closed(t.s.Leave) {\n", "	if !wait.Closed(t.s.Leave) {\n"},
		effects, mortals,
	})},
}

// laggards has guardians learn late in every plan, and nodes cut off that have something to undo. Any delay counts.
var laggards = []change{
	{"supervisor/testbed/sim/lag.go", "pick(r, 0, 0, 50*time.Millisecond, 500*time.Millisecond)", "pick(r, 500*time.Millisecond)"},
	{"supervisor/testbed/sim/lag.go", "		if r.IntN(2) > 0 {\n", "		if r.IntN(2) > 1 {\n"},
	{"supervisor/testbed/sim/effects.go", "pick(r, time.Second, p.Timeout/4, p.Timeout), r.IntN(2) == 0\n", "pick(r, p.Timeout/4), r.IntN(2) > 1\n"},
	{"supervisor/testbed/sim/plan.go", "fencing.Grace), Stonith: r.IntN(4) == 0,", "fencing.Grace), Stonith: r.IntN(4) > 4,"},
	{"supervisor/testbed/sim/plan.go", "	p.Agents = r.IntN(2) == 0\n", "	p.Agents = r.IntN(2) > 1\n"},
}

// moves has processes moved into other cgroups in every plan.
var moves = change{"supervisor/testbed/sim/moved.go", "	movedIn   = 17\n	movedFrom = 14\n", "	movedIn   = 1\n	movedFrom = 0\n"}

// names has the name server be away in every plan.
var names = change{"supervisor/testbed/sim/nameserver.go", "	namesIn   = 13\n	namesFrom = 8\n", "	namesIn   = 1\n	namesFrom = 0\n"}

// calms has nothing happen in every plan that a program may notice.
var calms = change{"supervisor/testbed/sim/plan.go", "Calm: r.IntN(10) == 0,", "Calm: r.IntN(10) < 10,"}

// upgrades has supervisors become other images in every plan.
var upgrades = change{"supervisor/testbed/sim/upgrade.go", "	upgradesIn   = 8\n	upgradesFrom = 5\n", "	upgradesIn   = 1\n	upgradesFrom = 0\n"}

// members has the ensembles of all plans with one change.
var members = change{"supervisor/testbed/sim/members.go", "	membersIn   = 19\n	membersFrom = 14\n", "	membersIn   = 1\n	membersFrom = 0\n"}

// versions has supervisors become later revisions than their guardians in every plan.
var versions = change{"supervisor/testbed/sim/versions.go", "	versionsIn   = 23\n	versionsFrom = 12\n", "	versionsIn   = 1\n	versionsFrom = 0\n"}
