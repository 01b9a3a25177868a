package main

import (
	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit/tick"
)

// record is what was seen. World.mu guards it.
type record struct {
	*world
	past  history.History // without what the book has
	burst *history.Burst
	wrong []history.Violation // what was seen and is no matter of the history
}

// mark notes who could run what from now on.
func (rc *record) mark() {
	able := map[string]bool{}
	quorum := 0
	for _, z := range rc.ensemble.servers {
		if z.harm == 0 {
			quorum++
		}
	}
	healthy := false
	for _, n := range rc.nodes {
		healthy = healthy || n.harm == 0 && !n.off && n.sup != nil && n.sup.Running()
	}
	for _, s := range rc.past.Services {
		able[s] = rc.ensemble.serving && quorum >= 2 && healthy && (s != fenced || !rc.power.broken) && rc.paused[s] == 0
	}
	rc.past.Marks = append(rc.past.Marks, history.Mark{At: tick.Now(), Able: able})
}

func (rc *record) wrongly(what, text string) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.wrong = append(rc.wrong, history.Violation{What: what, At: tick.Now(), Text: text})
}
