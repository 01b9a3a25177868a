package sim

import "slices"

// sabotagesOfCopies break what replicated programs rest on.
var sabotagesOfCopies = []sabotage{
	{"promote a copy whose tree does not end with the lease", []change{
		{"supervisor/service/promotion.go", "		err = t.tree.Move(ctx, t.s.Epoch, election.EncodeRelease(t.cand.Paths()))\n", "		err = ctx.Err()\n"},
		copies,
	}},
	{"promote a copy without a comparison", []change{
		{"supervisor/service/copyhere.go", "	if c.opening.Ours() {\n", "	if v.copy != nil || c.opening.Ours() {\n"},
		copies,
	}},
	{"kill a copy that was taken to be promoted, and do not ask it to end", []change{
		{"supervisor/service/run.go", "	t.term.promotion.runToStop(ctx, t)\n", ""},
		copies, stopsSoon,
	}},
	{"an empty position counts as 0", []change{
		{"supervisor/copies/judge.go", "		if r.counts(t) {\n", "		if t.Position == nil {\n			t.Position = new(uint64)\n		}\n		if r.counts(t) {\n"},
		copies,
	}},
	{"keep nothing of what a copy has followed", []change{
		{"supervisor/replica/state.go", "	if err == nil {\n		err = d.store().Save(raw)\n", "	if d.store == nil {\n		err = d.store().Save(raw)\n"},
		copies,
	}},
	{"promote a copy that is about to follow another one", []change{
		{"supervisor/copies/judge.go", "{ return t.Toward == 0 || r.Promoted == 0 }", "{ return true }"},
		{"supervisor/copies/judge.go", "beyond(t.Toward, best.Followed)", "beyond(0, best.Followed)"},
		{"supervisor/copies/judge.go", "{ return t.Tied && t.Era == r.Era }", "{ return false }"},
		copies,
	}},
	{"promote a copy without another comparison once its primary is dead", []change{
		{"supervisor/service/again.go", "	if !v.copy.compared() || !p.mustCompareAgain {\n", "	if !v.copy.compared() || p.mustCompareAgain || !p.mustCompareAgain {\n"},
		copies,
	}},
	{"promote a copy though fewer have told than have to", []change{
		{"supervisor/copies/judge.go", "need := max(r.From, 1)", "need := min(max(r.From, 1), 1)"},
		copies,
	}},
	{"do not wait by default for copies whose nodes are away", []change{
		{"supervisor/copies/judge.go", "	case promoted == 0:\n		return 2\n	}\n	return max(listed-1, 1)\n", "	case promoted == 0:\n		return 2\n	}\n	return 1\n"},
		copies,
	}},
	{"promote any copy of the live set", slices.Concat(lives, []change{
		{"supervisor/copies/judge.go", "		need = max(len(live)-1, 1)\n", "		need = 1\n"},
	})},
	{"start a copy whose data is half prepared", []change{
		{"supervisor/replica/prepare.go", "		return way, nil, torn != \"\" && way != \"\"\n", "		return way, nil, false\n"},
		copies, preparations,
	}},
	{"a previous primary follows without being prepared", []change{
		{"supervisor/replica/prepare.go", "	return kept.Diverges && len(m.c.conf", "	return kept.Diverges && false && len(m.c.conf"},
		copies, preparations,
	}},
	{"leave a primary that other nodes do not reach where it is", []change{
		{"supervisor/service/unreachable.go", "		t.run.programs.End(unreachable{now})\n", "		_ = unreachable{now}\n"},
		copies, hides,
	}},
	{"stop a primary that other nodes do not reach, though no copy is fit", []change{
		{"supervisor/service/unreachable.go", "	case now.to == \"\":\n		return now.unfit\n", "	case now.who == \"\":\n		return now.unfit\n"},
		copies, hides,
	}},
	{"give the lock back though the copy was not demoted", []change{
		{"supervisor/replica/promote.go", "	if err := a.until(ctx, Follower); err != nil {\n		return err\n	}\n	p.c.log.Info(\"the copy is demoted\"", "	p.c.log.Info(\"the copy is demoted\""},
		copies, demotions[0], demotions[1],
	}},
	{"set the address of a promoted copy for a follower", []change{
		{"supervisor/config/members.go", "s.Processes[:1], Hooks{}", "s.Processes[:], Hooks{}"},
		copies, effects,
	}},
	{"demote a copy whose address is still there", []change{
		{"supervisor/service/promotion.go", "	if t.run.programs.Withdraw(", "	if ctx.Err() == nil || t.run.programs.Withdraw("},
		copies, effects, demotions[0], demotions[1],
	}},
	{"start a follower though an address of its promotion is still there", []change{
		{"supervisor/replica/keep.go", "		if c.cfg.Unit.HasPendingEffects() {", "		if ctx.Err() != nil {"},
		copies, effects,
	}},
}
