package sim

// Of what others do beside Understudy: name servers, tools of a host, those who change an ensemble.
var sabotagesOfOthers = []sabotage{
	{"wait for the name server although an address is known", []change{
		{"election/lookup.go", "	known, looking := n.look(host)\n	if len(known) > 0 {\n", "	known, looking := n.look(host)\n	if known = nil; len(known) > 0 {\n"},
		names, calms,
	}},
	{"the next image does not know the addresses of the previous one", []change{
		{"election/carry.go", "	cfg.resolver().keep(c.Addresses)\n", "	_ = cfg.resolver().keep\n"},
		names, calms, upgrades,
	}},
}

// names has the name server be away in every plan.
var names = change{"supervisor/testbed/sim/nameserver.go", "	namesIn   = 13\n	namesFrom = 8\n", "	namesIn   = 1\n	namesFrom = 0\n"}

// calms has nothing happen in every plan that a program may notice.
var calms = change{"supervisor/testbed/sim/plan.go", "Calm: r.IntN(10) == 0,", "Calm: r.IntN(10) < 10,"}

// upgrades has supervisors become other images in every plan.
var upgrades = change{"supervisor/testbed/sim/upgrade.go", "	upgradesIn   = 8\n	upgradesFrom = 5\n", "	upgradesIn   = 1\n	upgradesFrom = 0\n"}
