package sim

// In some plans with copies a primary is demoted before a planned switchover, and its program runs on.
const (
	demoteCommand = "demote"
	ordersTree    = "orders"
	lateCommand   = "late" // what promote or demote leaves behind: it promotes the copy once more, after a while
)

func (p *Plan) demotes() bool {
	return p.Warm != nil && p.Warm.demotes || p.Replicated && p.Seed/replicatedIn/2%2 == 0
}

// copyOf is the program of the copy that a tree is about, or nil.
func (cv *copiesView) copyOf(t *tree) *proc {
	if t.aside == ordersTree {
		return cv.on(t.service, t.node)
	}
	return t.copy()
}

// promotes makes a copy the primary. World.mu is held.
func (cv *copiesView) promotes(p *proc, token int64) {
	cv.flawsOf(p.tree).diverges = true
	p.copy.primary, p.copy.led, p.copy.follows, p.copy.from = true, true, "", ""
	p.tree.aside = ""
	for _, q := range p.tree.all() {
		if q == p || q.parent == p {
			q.token = token
			cv.check.started(q)
		}
	}
	cv.promoted(p.tree)
}

// demoteEnds is the exit code of a demote. It may lie.
func (cv *copiesView) demoteEnds() int {
	if cv.rng.IntN(4) == 0 {
		return 1
	}
	return 0
}

// demotes makes a copy a follower of nobody, as a rule. World.mu is held.
func (cv *copiesView) demotes(p, command *proc) {
	if !p.copy.primary || !cv.plan.truthful() && cv.rng.IntN(8) == 0 || command.nature.code != 0 && cv.rng.IntN(2) == 0 {
		return
	}
	cv.check.effects.follows(p.tree)
	p.copy.primary = false
	cv.check.tally.cover.saw("active", demoteCommand, "stopping")
	for _, q := range p.tree.all() {
		if q == p || q.parent == p {
			cv.check.gone(q)
			q.token = 0
		}
	}
	p.tree.aside = "copy"
}

// lingers has a command leave something behind. World.mu is held.
func (cv *copiesView) lingers(t *tree, command *proc) {
	if t.aside == ordersTree && !(cv.plan.truthful() && command.program == demoteCommand) && cv.rng.IntN(3) == 0 {
		_, _ = t.fork(lateCommand, command.token, nature{life: 1 + drawn(cv.rng, cv.plan.Timeout/4), dies: drawn(cv.rng, cv.plan.Dying)})
	}
}

// late is the end of what a command has left behind, if nothing has killed it. World.mu is held.
func (cv *copiesView) late(p *proc) {
	if c := cv.copyOf(p.tree); c != nil && !p.killed && !c.copy.primary {
		cv.say("%s: the copy of %s is promoted by what a command has left behind", p.tree.node, p.tree.service)
		cv.promotes(c, p.token)
	}
}

// ends demands that a supervisor which is stopped asks a copy first that it has taken to promote it, and has not: what that has told counts, and
// it may come back with less if it is killed.
func (cv *copiesView) ends(t *handle) {
	cv.mu.Lock()
	defer cv.mu.Unlock()
	p, v, inc := t.tree.copy(), cv.check.services[t.tree.service], t.guard.inc
	if p == nil || p.copy.led || p.copy.asked || !inc.asked || inc.hung || !v.lock.there || v.lock.owner != t.tree.session || v.crumb.tree != t.tree.id {
		return
	}
	if t.guarded.MayStart(t.guard.now()) == nil {
		t.guarded.Started()
		cv.check.broken("data", "the copy of %s on %s was to be promoted, and is killed without being asked to end", t.tree.service, t.tree.node)
	}
}
