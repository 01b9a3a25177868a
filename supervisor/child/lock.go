package child

import "understudy/supervisor/wait"

// lockToRead begins a look that changes nothing: very many wait for answers, and look at each that comes. Its result ends it.
func (g *guardians) lockToRead() (end func()) {
	g.mu.Lock()
	return g.mu.Unlock
}

// lock begins a change of the pair. Its result ends that, and orders the kills that the change requires, unless an earlier
// change still orders its own: then these follow. P4: a supervisor orders every tree's death before it kills a guardian that still watches.
func (g *guardians) lock() (unlock func()) {
	g.mu.Lock()
	return g.unlock
}

func (g *guardians) unlock() {
	if next := g.pair.Next(); next > 0 && (g.due == 0 || next < g.due) {
		g.due = next
		wait.Poke(g.bell)
	}
	if g.ordering {
		g.mu.Unlock()
		return
	}
	for g.ordering = true; len(g.later) > 0; g.mu.Lock() {
		later := g.later
		g.later = nil
		g.mu.Unlock()
		for _, do := range later {
			do()
		}
	}
	g.ordering = false
	g.mu.Unlock()
}
