package sim

import "slices"

// sabotage breaks the real code in one way.
type sabotage struct {
	what    string
	changes []change
}

// weak marks what is done to the simulation itself, which stands for the real thing: that it is caught shows that the promises rest on
// that, not that the real one keeps them.
const weak = " *"

var sabotages = slices.Concat(sabotagesOfTerms, sabotagesOfBeats, sabotagesOfCopies, sabotagesOfWarm, sabotagesOfOthers)

var sabotagesOfTerms = []sabotage{
	{"skip the breadcrumb", []change{
		{"election/acquire.go", "	if o.clear {\n		crumb.Name", "	if false {\n		crumb.Name"},
	}},
	{"release before the tree is dead", []change{
		{"supervisor/service/end.go", "	switch {\n	case t.term.promotion.copyNotTaken:", "	if v.state.Claimed {\n		_ = t.term.claim.Release(context.WithoutCancel(ctx))\n	}\n	switch {\n	case t.term.promotion.copyNotTaken:"},
	}},
	{"lease from reads and pings, which a follower answers alone", []change{
		{"election/heartbeat.go", "stat, err := within(ctx, s.client, s.LeaseLength(), func() (*zk.Stat, error) { return s.conn.Set(p.path, data, -1) })",
			"v, err := s.exists(ctx, p.path)\n		stat := &v.stat\n		_ = data"},
	}},
	{"a lease that is longer than its node tells", []change{
		{"election/lease.go", "end, extended := sent+l.length, l.extended", "end, extended := sent+l.length*3/2, l.extended"},
	}},
	{"treat the previous session's name and lock as ours", []change{
		{"election/register.go", "		if err == nil && v.exists && v.stat.EphemeralOwner == s.ID() {", "		if err == nil && v.exists {"},
		{"election/acquire.go", "	t.mayHoldLock = lock.exists && lock.stat.EphemeralOwner == t.s.ID()",
			"	t.mayHoldLock = lock.exists && strings.Contains(string(lock.data), `\"node\":\"`+t.s.cfg.Node.Node+`\"`)"},
		{"election/acquire.go", "import (\n", "import (\n	\"strings\"\n"},
		{"election/claim.go", "!v.exists || v.stat.EphemeralOwner != c.s.ID() || v.stat.Czxid != c.czxid", "!v.exists"},
	}},
	{"no verification that the lock is still ours", []change{
		{"election/claim.go", "	if !v.exists || v.stat.EphemeralOwner != c.s.ID() || v.stat.Czxid != c.czxid {\n		c.gone = true\n		return ErrLost\n	}\n", ""},
	}},
	{"no grace delay", []change{
		{"fencing/chain.go", "		left = a.chain.Grace\n	}\n	if left <= 0 {\n", "		left = a.chain.Grace\n	}\n	if left > -time.Hour {\n"},
	}},
	{"treat a session's end as the lease's", []change{
		{"election/claim.go", "	dead := claimed + lease*12/5 // what it sends last, it sends a lease after the claim at most\n", "	dead := claimed\n"},
		strangers,
	}},
	{"count the wait for a lease from the previous active node's claim", []change{
		{"supervisor/service/fence.go", "chain.Fence(ctx, target, claim.Since, confirmed)", "chain.Fence(ctx, target, p.Since, confirmed)"},
	}},
	{"a release does not check the claim's name", []change{
		{"election/release.go", "	ops := []any{there(c.name)}\n", "	ops := []any{}\n"},
		wipes, effects,
	}},
	{"do not recreate a service's znodes after their deletion", []change{
		{"supervisor/service/intents.go", "errors.Is(err, election.ErrDeleted) {\n			n.erase()\n			return\n", "errors.Is(err, election.ErrDeleted) {\n			_ = n.erased\n"},
	}},
	{"no fencing at all", []change{
		{"supervisor/service/fence.go", "	fenced := fencing.Outcome{By: string(election.NoBreadcrumb)}\n	if claim.Previous == nil {",
			"	fenced := fencing.Outcome{By: string(election.NoBreadcrumb)}\n	if claim != nil {"},
	}},
	{"treat a clone's machine id as this machine's", []change{
		{"supervisor/witness/prove.go", "(t.Machine == \"\" || t.Node != p.Node)", "t.Machine == \"\""},
	}},
	{"assume without a look that a tree on this machine is dead", []change{
		{"supervisor/witness/prove.go", "	err := p.End(ctx, t.Tree)\n", "	err := ctx.Err()\n"},
	}},
	{"close the session although a death is unproved", []change{
		{"election/session.go", "			s.Expire(err) // P2: programs that may be alive keep their lock, until the session ends by itself\n			e.discard(conn)\n			return err\n",
			"			s.Expire(err)\n"},
	}},
	{"a guardian closes the session although a death is unproved", []change{
		{"election/ticket.go", "	if !how.all {\n		return nil\n	}\n", ""},
	}},
	{"name a node's files by its list of servers", []change{
		{"supervisor/supervisor.go", "return ClusterName(cfg.Root, cfg.Cluster) }", "return ClusterName(cfg.Root, cfg.Cluster+fmt.Sprint(cfg.Servers)) }"},
	}},
	{"no quarantine after a loss of data", []change{
		{"supervisor/service/memory.go", "	return m.birth != b || newest < m.known.Token || zxid < m.known.Zxid", "	return false"},
	}},
	{"learn the session timeout of another node from a record alone", []change{
		{"election/seen.go", "	s.seen.saw(longest)\n	return longest\n", "	return longest\n"}, unequals,
	}},
	{"restart beside processes that the program left behind", []change{
		{"supervisor/service/run.go", "		err := t.candidacy.tree.Kill(bounded)\n", "		err := bounded.Err()\n"},
	}},
	{"do not watch the lock while active", []change{
		{"supervisor/service/term.go", "		err := t.claim.Watch(watching)\n", "		<-watching.Done()\n		err := watching.Err()\n"},
	}},
	{"do not watch the lock while a program stops", []change{
		{"supervisor/service/term.go", "		v.breadcrumb.killNow(context.WithoutCancel(ctx), t.cand, t.tree)\n", ""},
		{"supervisor/unit/stop.go", "	case <-s.cut.LockLost:\n		why = \"the lock is lost, killing the program\"\n", "	case <-(chan struct{})(nil):\n		why = \"the lock is lost, killing the program\"\n"},
	}},
	{"stop a program politely after its lock was lost", []change{
		{"supervisor/service/term.go", "		v.breadcrumb.killNow(context.WithoutCancel(ctx), t.cand, t.tree)\n", ""},
		{"supervisor/service/role/step.go", "	case LockLost, LeaseOver, Expired:\n		return s.end(k, Home, false), true", "	case LockLost, LeaseOver, Expired:\n		return s.end(k, Home, polite && k == LockLost), true"},
		{"supervisor/unit/stop.go", "	case <-s.cut.LockLost:\n		why = \"the lock is lost, killing the program\"\n", "	case <-(chan struct{})(nil):\n		why = \"the lock is lost, killing the program\"\n"},
	}},
	{"promote during a pause", []change{
		{"election/acquire.go", "	if o.intents != nil {\n		ops = append(ops, &zk.CheckVersionRequest{Path: t.paths.Control(),", "	if false {\n		ops = append(ops, &zk.CheckVersionRequest{Path: t.paths.Control(),"},
		{"supervisor/service/inbox.go", "	case o.control.Paused:\n", "	case false:\n"},
	}},
	{"do not check for a pause again when the lock is taken", append([]change{
		{"election/acquire.go", "	if o.intents != nil {\n		ops = append(ops, &zk.CheckVersionRequest{Path: t.paths.Control(),", "	if false {\n		ops = append(ops, &zk.CheckVersionRequest{Path: t.paths.Control(),"},
	}, pauses...)},
	{"do not stop what an operator has stopped", []change{
		{"supervisor/service/intents.go", "	if c.Stopped {\n		return orderStop\n	}\n", ""},
	}},
	{"never give a service back to a preferred node", []change{
		{"supervisor/service/run.go", "			t.obey(watching, ready == nil)\n			preferred = v.preferredTimer(preferred)\n", "			t.obey(watching, ready == nil)\n			_ = v.preferredTimer(preferred)\n"},
	}},
	{"let a drained node take a service", []change{
		{"supervisor/service/inbox.go", "	case o.drained != nil && !o.forced:\n", "	case o.drained != nil && o.forced:\n"},
		commands,
	}},
	{"forget a service although its program may still run", []change{
		{"supervisor/control/forget.go", "	case v.Fencing != nil && v.Fencing.Node != \"\":\n", "	case v.Fencing != nil && v.Fencing.Node == \" \":\n"},
		{"supervisor/control/forget.go", "	case v.Fencing != nil:\n", "	case v.Fencing == nil && v.Fencing != nil:\n"},
		{"supervisor/control/forget.go", "[]string{p.Lock(), p.Crumb()}", "[]string{p.Lock()}"},
		commands,
	}},
	{"ignore orders while nothing runs", []change{
		{"supervisor/service/judge.go", "		v.view.announceChange()\n		switch v.ordered() {\n", "		v.view.announceChange()\n		switch orderNone {\n"},
		drills,
	}},
	{"report good health while nothing runs", []change{
		{"supervisor/service/wellness.go", "	case w.condition == backing, w.condition == unproved:\n		return election.HealthFailing, w.ill\n", ""},
		drills,
	}},
	{"prefer a node again right after its backoff", []change{
		{"supervisor/service/preference.go", "	case r.times > 1 && now.Before(r.until):", "	case r.times < 0 && now.Before(r.until):"},
		drills,
	}},
	{"an agent answers before the tree is dead", []change{
		{"supervisor/service/trees.go", "	if err := errors.Join(t.endPromoteTree(ctx), t.tree.End(ctx)); err != nil {\n		return err\n	}\n", "	if t != nil {\n		go errors.Join(t.endPromoteTree(ctx), t.tree.End(ctx))\n		return nil\n	}\n"},
	}},
	{"do not wait for a death after the service was removed", []change{
		{"supervisor/service/leftover.go", "				return false\n			}\n			leaves = nil\n		case <-session.Done():", "				return false\n			}\n			return false\n		case <-session.Done():"},
		{"supervisor/service/leftover.go", "v.unprovedTree.tree != nil && v.unprovedTree.epoch == o.s.Epoch {", "v.unprovedTree.tree != nil {"},
		stuck,
	}},
	{"go back to the server that was the last one", []change{
		{"election/dialer.go", "	h.next = (h.next + 1) % len(h.servers)\n", "	h.next %= len(h.servers)\n"},
		members,
	}},
	{"start a service beside its removed namesake", []change{
		{"supervisor/roster.go", "	return r.services[first] != v\n", "	return first < 0\n"},
	}},
	{"do not restart for a changed config", []change{
		{"supervisor/unit/outdated.go", "	return !reflect.DeepEqual(startSettings(was), startSettings(now))\n", "	return false\n"},
	}},
	{"forget promises at a restart", []change{
		{"supervisor/failsafe/promises.go", "	return p.since + election.PromiseLength(session), p.since > 0\n", "	return p.since + 0*election.PromiseLength(session), p.since > 0\n"},
		outages, losses,
	}},
	{"treat a delay as a proof although a process is known to be alive", []change{
		{"supervisor/service/breadcrumb.go", "	case p.Leftover.Known:\n", "	case p.Leftover.Known && p.Node == \"\":\n"},
		held,
	}},
	{"promise although ZooKeeper answers", []change{
		{"supervisor/failsafe/promises.go", "	case now < p.seen:\n", "	case false:\n"},
		outages, losses,
	}},
	{"continue although one member does not promise", []change{
		{"supervisor/failsafe/others.go", "		end = min(end, o.until[p])\n", "		end = max(end, o.until[p])\n"},
		outages, losses,
	}},
	{"extend all leases by the promises for one service", []change{
		{"supervisor/failsafe/keep.go", "		deadline = min(deadline, limit)\n", "		_ = limit\n"},
		outages, losses, pairs, sleepers,
	}},
	{"take a lock again without a look at the claim's name", []change{
		{"election/reclaim.go", "	case !slices.Contains(look.Claims, claim.name):\n", "	case len(claim.name) == 0:\n"},
		{"election/reclaim.go", "		remove(claim.name),\n", ""},
		outages, lossesAnd("PauseService, StopInFencing, DeleteInFencing"),
	}},
	{"guardians keep the ticket of the session that has expired", []change{
		{"supervisor/service/reclaim.go", "	if err := t.tree.Move(bounded, t.s.Epoch, election.EncodeRelease(t.cand.Paths())); err != nil {\n		return err\n	}\n", ""},
		outages, lossesAnd("CrashSupervisor"),
	}},
	{"give a handed-over term's lock back before its tree is dead", []change{
		{"supervisor/service/run.go", "	t.term.run.why = t.term.run.programs.Wait()\n", "	t.term.run.why = t.term.run.programs.Wait()\n	if adopt != nil {\n		_ = t.term.claim.Release(context.WithoutCancel(ctx))\n	}\n"},
	}},
	{"treat the lease as new after an upgrade", []change{
		{"election/lease.go", "on, end, end-l.length\n", "on, l.now()+l.length, end-l.length\n"},
	}},
	{"keep the lease when a server gives another session", []change{
		{"election/greeted.go", "	case known != 0 && h.session != known:", "	case known < 0 && h.session != known:"},
	}},
	{"do not notice an older copy of ZooKeeper's data", []change{
		{"supervisor/service/memory.go", "	return m.birth != b || newest < m.known.Token || zxid < m.known.Zxid || setBacks > m.setBacks\n", "	return m.birth != b || zxid < 0\n"},
		rewinds,
	}},
	{"ask a demoted copy what it is before what promoted it is dead", []change{
		{"supervisor/replica/promote.go", "	if err := orders.End(ctx); err != nil {\n		return err\n	}\n	if err := a.until", "	if err := a.until"},
		{"supervisor/service/end.go", "errors.Join(t.promotion.endPromoteTree(bounded), t.tree.End(bounded))", "errors.Join(t.tree.End(bounded))"},
		copies, demotions[0], demotions[1],
	}},
	{"a lease that is twice as long as its node tells", []change{
		{"election/lease.go", "end, extended := sent+l.length, l.extended", "end, extended := sent+l.length*2, l.extended"},
	}},
	{"do not look whether a service's goroutine moves", []change{
		{"supervisor/session.go", "	if s.cfg.Stuck != nil {\n		wg.Go(func() {\n", "	if false {\n		wg.Go(func() {\n"},
	}},
	{"treat an action that may take its time as a standstill", []change{
		{"supervisor/standstill.go", "stood-limit > atMost {", "atMost >= 0 {"},
	}},
	{"start without the watchdog that is required", []change{
		{"supervisor/service/term.go", "	case w.Mode == config.WatchdogRequired:\n", "	case w.Mode == config.WatchdogRequired && false:\n"},
		watchdogs,
	}},
	{"a watchdog that acts after the session's end", []change{
		{"election/timing.go", "AfterLease(lease time.Duration) time.Duration { return lease / 25 }", "AfterLease(lease time.Duration) time.Duration { return lease / 2 }"},
		watchdogs,
	}},
	{"a watchdog too slow to be fed in time", []change{
		{"election/timing.go", "return max((lease * 2 / 5).Truncate", "return max((2 * lease).Truncate"},
		watchdogs,
	}},
	{"open the watchdog beside a previous supervisor's leftovers" + weak, []change{
		{"supervisor/testbed/sim/leftover.go", "host.end(bounded, g.inc.gate, func(*tree) bool { return true })", "host.end(bounded, g.inc.gate, func(*tree) bool { return false })"},
		watchdogs, held,
	}},
	{"guardians feed the watchdog after a lease's end", []change{
		{"supervisor/guard/watchdog.go", "	if bound && now > last {\n", "	if bound && now < 0 {\n"},
		watchdogs,
	}},
	{"guardians do not feed the watchdog", []change{
		{"supervisor/guard/watchdog.go", "	g.hands.Feed()\n", ""},
		watchdogs,
	}},
	{"no removal of the container when a lease ends" + weak, []change{
		{"supervisor/testbed/sim/mortal.go", "func (c container) Seal() { c.removed = true }\n", "func (c container) Seal() {}\n"},
		{"supervisor/testbed/sim/mortal.go", "	c.removed = true\n	if c.aside", "	if c.aside"},
	}},
	{"treat a tree as dead when its program has left its container" + weak, []change{
		{"supervisor/testbed/sim/mortal.go", "{ return len(t.procs) == 0, nil }", "{ return t.container.Dead() }"},
	}},
	{"do not kill processes that have left their container" + weak, []change{
		{"supervisor/testbed/sim/proc.go", "		case p.parent == nil: // by its pidfd\n", "		case p.parent == nil && !p.nature.strays:\n"},
	}},
	{"take a death for proved before it is", []change{
		{"supervisor/guard/kill.go", "	defer hands.Change(t.endKill)\n", "	defer hands.Change(t.endKill)\n	if end {\n		hands.Change(t.markDead)\n	}\n"},
		held,
	}},
	{"end a kill unproved when its time is over", []change{
		{"supervisor/guard/kill.go", "return errors.Join(fmt.Errorf(\"%w: %w\", ErrUnproved, context.Cause(ctx)), err)", "_ = err\n			return nil"},
		held,
	}},
	{"strike a tree only once", []change{
		{
			"supervisor/guard/kill.go", "		err := b.KillNow()\n		if remove && !pending { // P3\n			b.Seal()\n		}\n		return false, errors.Join(err, b.KillHarder())\n",
			"		if remove && !pending { // P3\n			b.Seal()\n		}\n		return false, nil\n",
		},
	}},
	{"order the kill of a container only once" + weak, []change{
		{"supervisor/testbed/sim/mortal.go", "	for _, p := range c.all() {\n		if !p.outside() {\n", "	for _, p := range c.all() {\n		if !p.outside() && !p.nature.headless {\n"},
	}},
	{"treat a dying guardian as a living one", []change{
		{"supervisor/guard/replacing.go", "!g.lost && twin.acked >= s.asked {", "!g.lost && twin.number > 0 {"},
	}},
	{"replace a guardian without checking that the other one lives", []change{
		{"supervisor/guard/replacing.go", "!g.lost && twin.acked >= s.asked {", "!g.lost && twin.number >= 0 {"},
		{"supervisor/guard/replacing.go", "		g.bothLost(at, errAlone, BothLost)\n", "		g.start(at)\n"},
	}},
	{"let a guardian serve before it knows every tree", []change{
		{"supervisor/guard/guardians.go", "		if s.post == learning && m.Seq == 0 && m.Tree > 0 {\n", "		if g.stopped && m.Seq == 0 && m.Tree > 0 {\n"},
		blinds,
	}},
	{"a guardian closes a session before it knows every tree", []change{
		{"supervisor/guard/lease.go", "{ return g.told && len(l.ticket) > 0 }", "{ return len(l.ticket) > 0 }"},
		blinds,
	}},
	{"tell a new guardian about no tree", []change{
		{"supervisor/guard/state.go", "range l.trees {\n			all = append(all, t.registration())\n", "range l.trees {\n			_ = t.registration()\n"},
	}},
	{"let programs run when both guardians are lost", []change{
		{"supervisor/guard/replacing.go", "	g.StrikeAll(ErrGuardiansLost)\n", ""},
	}},
	{"guardians do not end leases", []change{
		{"supervisor/guard/guardian.go", "	return !l.ended && !l.alreadyOver && l.deadline > 0 && now >= l.deadline\n", "	return l.deadline < 0\n"},
		{"supervisor/guard/guardian.go", "			next = sooner(next, l.deadline)\n", ""},
	}},
	{"guardians ignore their supervisor's death", []change{
		{"supervisor/guard/guardian.go", "		g.orphaned = true\n		g.endAll(now, supervisorGone)\n", "		g.orphaned = true\n		_ = supervisorGone\n"},
	}},
	{"give the lock back though an undo has failed", []change{
		{"supervisor/service/end.go", "	undone := v.unit.UndoAll(trying, unit.Leaving{Asked: t.s.Leave, Within: stopPatience}, report)\n", "	_ = unit.Leaving{}\n	undone := v.unit.Undo(trying) == nil || trying.Err() == nil\n"},
		effects,
	}},
	{"start beside what was not undone in place", []change{
		{"supervisor/service/role/step.go", "		case e.Kind == NotUndone && judging: // P2: it is not started beside what it left\n			return s.end(e.Kind, Home, false), true\n",
			"		case e.Kind == NotUndone && judging:\n			return s.to(Judging), true\n"},
		effects,
	}},
	{"a delay is a proof though an undo has failed", []change{
		{"supervisor/service/breadcrumb.go", "	case len(p.Left) > 0:\n		return fmt.Errorf(\"%w (%s)\", errEffects,", "	case len(p.Left) > 1<<20:\n		return fmt.Errorf(\"%w (%s)\", errEffects,"},
		effects,
	}},
	{"a guardian removes the breadcrumb of what is not undone", []change{
		{"election/ticket.go", "		left := r.left(named)\n", "		left := r.left(named)[:0]\n"},
		effects,
	}},
	{"guardians undo effects before the tree is dead", []change{
		{"supervisor/guard/effects.go", "		if !t.dead || !t.pending() ||", "		if !t.pending() ||"},
		effects,
	}},
	{"guardians close a session whose effects are not undone", []change{
		{"supervisor/guard/guardian.go", "{ return t.dead && !t.pending() }", "{ return t.dead }"},
		effects,
	}},
	{"a supervisor and its guardians undo at the same time", []change{
		{"supervisor/unit/orphan.go", "	unlock, err := store.Lock(bounded)\n", "	unlock, err := func() {}, bounded.Err()\n"},
		{"supervisor/unit/orphan.go", "	unlock, err = d.store.Lock(ctx)\n", "	unlock, err = func() {}, ctx.Err()\n"},
		effects,
	}},
	{"a late guardian undoes what a later term did", []change{
		{"supervisor/unit/orphan.go", "		if last < 0 || left.PendingUndos[last].Token != n.Token {\n", "		if last < 0 {\n"},
		effects,
	}},
	{"dead is enough, undone or not", []change{
		{"supervisor/witness/prove.go", "		if left := p.PendingEffects(t, p.Host.Boot); len(left) > 0 {\n", "		if left := p.PendingEffects(t, p.Host.Boot); len(left) > 1<<20 {\n"},
		effects,
	}},
	{"another boot is a proof though an effect survives it", []change{
		{"supervisor/witness/prove.go", "	case booted:\n		return p.undone(t, ", "	case booted:\n		p.PendingEffects = nil\n		return p.undone(t, "},
		effects,
		survivors,
	}},
	{"what cannot be read is not owed", []change{
		{"supervisor/unit/undo.go", "	if u.undos.unread != nil {\n		names = append(names,", "	if u.undos.unread != nil && u.undos.all != nil {\n		names = append(names,"},
		effects,
		badNotes,
	}},
	{"note only once that an effect is undone", []change{
		{"supervisor/unit/pending.go", "		d.mu.Lock()\n		defer d.mu.Unlock()\n		d.unsaved = true\n", "		d.mu.Lock()\n		defer d.mu.Unlock()\n		d.unsaved = false\n"},
		effects,
		survivors,
		badNotes,
	}},
	{"a supervisor forgets what the one before it had to undo", []change{
		{"supervisor/service/stay.go", "	v.unit.StopUndo()\n	v.unit.LoadUndos()\n", "	v.unit.StopUndo()\n"},
		effects,
	}},
	{"the breadcrumb lists no effects", []change{
		{"supervisor/service/service.go", "	effects := election.Effects{Names: e.Names, UndoMs", "	effects := election.Effects{Names: e.Names[:0], UndoMs"},
		effects,
	}},
	{"a delay is a proof where one is needed", []change{
		{"supervisor/service/breadcrumb.go", "	case len(p.NeedProof) > 0:\n		return fmt.Errorf(\"%w (%s)\", errNeedsProof,", "	case len(p.NeedProof) > 1<<20:\n		return fmt.Errorf(\"%w (%s)\", errNeedsProof,"},
		effects,
		mortals,
	}},
}
