package sim

import (
	"maps"
	"slices"
	"time"

	"understudy/supervisor/guard"
)

// orphansView looks for what outlives those who should end it: P4.
type orphansView struct{ *checker }

// unwatch notes that a guardian is no more: what it was the last to know of has to die, whatever other guardians there are by then.
func (ov orphansView) unwatch(g *guardian) {
	for _, name := range slices.Sorted(maps.Keys(g.host.trees)) {
		t := g.host.trees[name]
		if _, known := t.known[g]; !known {
			continue
		}
		delete(t.known, g)
		if all := t.all(); len(t.known) == 0 && len(all) > 0 {
			ov.w.after(unwatchedFor, func() { ov.unwatched(t, all) })
		}
	}
}

// unwatchedFor is how long it may take a supervisor to notice that both are lost: until the first is replaced, and the second has not
// answered within its limit, and a second look.
const unwatchedFor = 5 * guard.AckLimit / 2

// unwatched looks, a while after its last guardian's death, for what was alive in a tree then.
func (ov orphansView) unwatched(t *tree, all []*proc) {
	inc := t.of.inc
	if left := unwatchedFor - time.Since(inc.awake); inc.alive() && (!inc.running() || left > 0) {
		ov.w.after(max(left, unwatchedFor/4), func() { ov.unwatched(t, all) })
		return
	}
	for _, p := range all {
		if !p.killed && !p.dead {
			ov.broken("P4", "%v outlived the last guardian that knew of it", p)
		}
	}
}

// outlived looks, a while after a supervisor's death, for children that outlived it although a guardian could act: P4.
func (ov orphansView) outlived(g *twins) {
	for other := range g.inc.node.host.beings {
		if other.of == g && !other.running() {
			return
		}
	}
	for _, t := range g.inc.node.host.trees {
		for _, p := range t.all() {
			if t.of == g && !p.doomed {
				ov.broken("P4", "%v outlived its supervisor", p)
			}
		}
	}
}

// strays looks, in a quiet moment, for what should not be alive: P4.
func (ov orphansView) strays() {
	for _, v := range ov.services {
		for _, p := range inOrder(v.living) {
			if !p.killed && (!v.lock.there || v.lock.owner != p.tree.session) {
				ov.broken("P4", "%v is alive without the lock, though all is well", p)
			}
		}
	}
}
