package sim

var sabotagesOfBeats = []sabotage{
	{"take a lock after half a lease without heartbeats", []change{
		{"election/timing.go", "time.Duration { return lease * 21 / 20 }", "time.Duration { return lease / 2 }"},
	}},
	{"take a lock without a check that its node is silent", []change{
		{"election/vacate.go", "(!still.seen || t.s.cfg.Now() < still.since+OverAfter(lease)) {\n", "lease < 0 {\n"},
		{"election/vacate.go", "still.unmoved, []any{remove(t.paths.Lock())})", "[]any{remove(t.paths.Lock())})"},
		{"election/beats.go", "	if now >= w.since+OverAfter(cmp.Or(w.told, longest)) {\n", "	if longest > 0 {\n"},
	}},
	{"keep guardians that do not know an order", []change{
		{"supervisor/guard/guardians.go", "m.Refusal == RefusedWord && s.post == serving &&", "m.Refusal == RefusedWord && s.post == vacant &&"},
		versions, effects,
	}},
	{"count a look from before the loss of a heartbeat", []change{
		{"election/beats.go", "	case !w.seen || is != w.sight || l.data != w.data, l.in != w.in && l.data.epoch == 0:\n", "	case !w.seen:\n"},
	}},
	{"wait for the end of a session, whoever keeps it alive", []change{
		{"election/vacate.go", "(!still.seen || t.s.cfg.Now() < still.since+OverAfter(lease)) {\n", "lease > 0 {\n"}, keepers,
	}},
	{"remove the record of a session whose programs may be alive", []change{
		{"election/vacate.go", "buried := t.s.before.wasDead(held.of.session) && ", "buried := "},
	}},
}
