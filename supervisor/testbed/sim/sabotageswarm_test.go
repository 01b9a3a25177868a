package sim

// warms makes the services of every plan warm that are not replicated.
var warms = change{"supervisor/testbed/sim/warm.go", "	warmIn   = 5\n	warmFrom = 0\n", "	warmIn   = 1\n	warmFrom = 0\n"}

// sabotagesOfWarm break what warm programs rest on.
var sabotagesOfWarm = []sabotage{
	{"promote a warm program whose tree does not end with the lease", []change{
		{"supervisor/service/promotion.go", "		err = t.tree.Move(ctx, t.s.Epoch, election.EncodeRelease(t.cand.Paths()))\n", "		err = ctx.Err()\n"},
		warms,
	}},
	{"give the lock back though a warm program has refused to cease", []change{
		{"supervisor/replica/promote.go", "	}\n	if err := there.give(ctx, first, a.conf.Demotes()); err != nil {\n		return err\n	}\n", "	}\n	_ = there.give(ctx, first, a.conf.Demotes())\n"},
		warms, demotions[1],
	}},
	{"start a warm program beside what is left of it", []change{
		{"supervisor/service/promotion.go", "		err = t.tree.Kill(ctx)\n", "		err = ctx.Err()\n"},
		warms,
	}},
}
