package sim

import (
	"maps"
	"slices"
	"time"

	"understudy/supervisor/guard"
)

// unwatch notes that a guardian is no more: what it was the last to know of has to die, whatever other guardians there are by then.
// P4.
func (c *checker) unwatch(g *guardian) {
	for _, name := range slices.Sorted(maps.Keys(g.host.trees)) {
		t := g.host.trees[name]
		if _, known := t.known[g]; !known {
			continue
		}
		delete(t.known, g)
		if all := t.all(); len(t.known) == 0 && len(all) > 0 {
			c.w.after(unwatchedFor, func() { c.unwatched(t, all) })
		}
	}
}

// unwatchedFor is how long it may take a supervisor to notice that both are lost: until the first is replaced, and the second has not
// answered.
const unwatchedFor = 2 * guard.AckLimit

// unwatched looks, a while after its last guardian's death, for what was alive in a tree then.
func (c *checker) unwatched(t *tree, all []*proc) {
	inc := t.of.inc
	if left := unwatchedFor - time.Since(inc.awake); inc.alive() && (!inc.running() || left > 0) {
		c.w.after(max(left, unwatchedFor/4), func() { c.unwatched(t, all) })
		return
	}
	for _, p := range all {
		if !p.killed && !p.dead {
			c.broken("P4", "%v outlived the last guardian that knew of it", p)
		}
	}
}
