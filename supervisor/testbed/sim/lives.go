package sim

import (
	"slices"
	"time"

	"understudy/supervisor/child"
)

// In two of three plans with more than two copies the primary's program is told which of the others it counts before it acknowledges a write.
const (
	copiesCommand = "copies"

	stalling = 300 // once in so many writes a copy gets nothing new for a while
)

func (p *Plan) lives() bool { return p.Replicated && p.Nodes > 2 && p.Seed/replicatedIn%3 > 0 }

// counts reports whether a primary counts the copy on a node.
func (cv *copiesView) counts(primary *proc, node string) bool {
	return !cv.plan.lives() || slices.Contains(primary.copy.counted, node)
}

// stalls reports whether a copy that follows gets nothing new now.
func (cv *copiesView) stalls(f *proc) bool {
	if !cv.plan.lives() || cv.course.quiet {
		return false
	}
	if now := time.Now(); f.copy.stalls.Before(now) && cv.rng.IntN(stalling) == 0 {
		f.copy.stalls = now.Add(drawn(cv.rng, 20*cv.plan.Timeout))
	}
	return time.Now().Before(f.copy.stalls)
}

// countEnds is the exit code of the command that tells a program whom to count.
func (cv *copiesView) countEnds(p *proc) int {
	if p == nil || !p.copy.primary || cv.rng.IntN(4) == 0 {
		return 1
	}
	return 0
}

// counting is the end of such a command. One that fails, or is killed, may have done it or not. World.mu is held.
func (cv *copiesView) counting(command *proc, status child.ExitStatus) {
	p := command.tree.copy()
	if p == nil || !p.copy.primary || status.Code != 0 && cv.rng.IntN(2) == 0 {
		return
	}
	p.copy.counted = command.copy.counted
	cv.check.tally.cover.saw("active", copiesCommand, "active")
	cv.say("%s: the primary of %s counts the copies on %v", p.tree.node, p.tree.service, p.copy.counted)
}
