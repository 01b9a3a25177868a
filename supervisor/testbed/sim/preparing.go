package sim

import (
	"time"

	"understudy/supervisor/child"
)

// In every second plan with copies, data that only one of them has keeps it from following: prepare or reclone has to take that out.
const (
	prepareCommand = "prepare"
	recloneCommand = "reclone"
)

func (p *Plan) prepares() bool { return p.Replicated && p.Seed/replicatedIn%2 == 0 }

// copyFlaws is what keeps the data of one copy from being used. World.mu guards it.
type copyFlaws struct {
	diverges bool // it was promoted, and has not been prepared since
	torn     bool // prepare or reclone has begun to change it, and has not succeeded
}

// flawsOf is those of the copy in a tree.
func (cv *copiesView) flawsOf(t *tree) *copyFlaws {
	key := effectKey{t.node, t.service}
	if cv.flaws[key] == nil {
		cv.flaws[key] = &copyFlaws{}
	}
	return cv.flaws[key]
}

// refuses reports whether a copy cannot follow another node's: its data has gone another way.
func (cv *copiesView) refuses(t *tree, active string) bool {
	theirs := cv.data[effectKey{active, t.service}]
	return cv.plan.prepares() && !theirs.has(cv.data[effectKey{t.node, t.service}])
}

// prepareTakes is how long a command takes that changes a copy's data, and how it ends.
func (ps *programs) prepareTakes(t *tree) nature {
	r := t.host.rng
	n := nature{life: 1 + drawn(r, ps.plan.Timeout/2), dies: drawn(r, ps.plan.Dying)}
	if r.IntN(4) == 0 {
		n.code = 1
	}
	return n
}

// prepares has a command begin to change a copy's data. World.mu is held.
func (cv *copiesView) prepares(t *tree, p *proc, active string) {
	if t.copy() != nil {
		cv.check.broken("data", "%s runs on %s beside the copy of %s", p.program, t.node, t.service)
	}
	if active == "" || active == t.node {
		cv.check.broken("data", "%s runs on %s, and no other copy of %s is promoted", p.program, t.node, t.service)
	}
	cv.flawsOf(t).torn, p.copy.follows = true, active
	cv.check.tally.cover.saw("standby", p.program, "standby")
}

// prepared is the end of such a command. World.mu is held.
func (cv *copiesView) prepared(p *proc, status child.ExitStatus) {
	if status.Code != 0 || p.killed {
		return
	}
	t, key := p.tree, effectKey{p.tree.node, p.tree.service}
	theirs := cv.data[effectKey{p.copy.follows, t.service}]
	for mine := cv.data[key]; ; mine = mine.before {
		if cv.data[key] = mine; theirs.has(mine) {
			break
		}
	}
	if p.program == recloneCommand {
		cv.data[key] = theirs
	}
	*cv.flawsOf(t) = copyFlaws{}
	cv.say("%s: the copy of %s is like that on %s (%s)", t.node, t.service, p.copy.follows, p.program)
}

// begins demands that the data of a copy that starts is whole. World.mu is held.
func (cv *copiesView) begins(t *tree) {
	cv.check.effects.follows(t)
	if cv.flawsOf(t).torn {
		cv.check.broken("data", "the copy of %s starts on %s with data that is half prepared", t.service, t.node)
	}
}

// turns has a copy follow another node's. World.mu is held.
func (cv *copiesView) turns(t *tree, p *proc, active string) {
	if cv.plan.prepares() && cv.flawsOf(t).diverges {
		cv.check.broken("data", "the copy of %s on %s was the primary, and is to follow %s without having been prepared", t.service, t.node, active)
	}
	if cv.refuses(t, active) {
		return
	}
	p.copy.follows, p.copy.from, p.copy.synced = active, "", time.Now().Add(drawn(cv.rng, cv.plan.Timeout/10))
	cv.say("%s: the copy of %s follows %s", t.node, t.service, active)
}
