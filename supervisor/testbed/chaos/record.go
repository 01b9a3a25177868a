package main

import (
	"slices"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// record is what was seen. World.mu guards it.
type record struct {
	*world
	past  history.History // without what the book has
	burst *history.Burst
	wrong []history.Violation // what was seen and is no matter of the history
}

// open begins the history. What comes before the first fault belongs to no burst that is kept.
func (rc *record) open(seed uint64, kinds []*kind) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.past = history.History{Setup: history.Setup{Seed: seed, Services: serviceNames(), Bounds: bounds}, Began: tick.Now()}
	for _, k := range kinds {
		rc.past.Setup.Kinds = append(rc.past.Setup.Kinds, k.name)
	}
	for _, n := range rc.fleet.nodes {
		rc.past.Setup.Nodes = append(rc.past.Setup.Nodes, n.name)
	}
	rc.burst = &history.Burst{}
}

// next begins another burst.
func (rc *record) next() {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.past.Bursts = append(rc.past.Bursts, history.Burst{})
	rc.burst = &rc.past.Bursts[len(rc.past.Bursts)-1]
}

// fault adds one to the burst, if there is one now, and returns what notes its end.
func (rc *record) fault(f history.Fault) (over func()) {
	defer rc.mark()
	b := rc.burst
	if b == nil {
		return rc.mark
	}
	i := len(b.Faults)
	b.Faults = append(b.Faults, f)
	return func() {
		b.Faults[i].To = tick.Now()
		rc.mark()
	}
}

// healed notes that all faults of the burst were ended.
func (rc *record) healed() {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.burst.Healed = tick.Now()
}

// well ends the burst: all was well from some moment on, but for what is missing. Everything up to now is judged.
func (rc *record) well(at int64, missing string) error {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.burst.Well = at
	if missing != "" {
		rc.wrong = append(rc.wrong, history.Violation{What: "stuck", At: rc.burst.Healed, Text: "still wanting: " + missing})
	}
	h, err := rc.judged(false)
	if err != nil {
		return err
	}
	rc.tellHealed(h)
	if bad := append(h.Check(), rc.wrong...); len(bad) > 0 {
		return errViolated
	}
	rc.burst = nil
	return nil
}

// judged is the history up to now, to be judged.
func (rc *record) judged(whole bool) (*history.History, error) {
	h := rc.past
	h.Lives = slices.Clone(h.Lives) // they go on
	h.Ended = tick.Now()
	err := rc.book.fill(&h, whole)
	return &h, err
}

// lives notes that a node's supervisor has begun, and its end when that comes.
func (rc *record) lives(n *node, from int64) {
	i := len(rc.past.Lives)
	rc.past.Lives = append(rc.past.Lives, history.Life{Node: n.name, Pid: n.sup.Pid, From: from})
	go func(s *kit.Supervisor) {
		<-s.Ended()
		at := tick.Now()
		rc.mu.Lock()
		defer rc.mu.Unlock()
		rc.past.Lives[i].To = at
	}(n.sup)
}

// resumed notes a pause that is over. From is zero where ZooKeeper did not acknowledge it.
func (rc *record) resumed(p history.Pause) {
	if p.From > 0 {
		rc.past.Pauses = append(rc.past.Pauses, p)
	}
	rc.mark()
}

// count changes the counts. World.mu is not held.
func (rc *record) count(add func(c *history.Counts)) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	add(&rc.past.Counts)
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
	for _, n := range rc.fleet.nodes {
		healthy = healthy || n.harm == 0 && !n.off && n.sup != nil && n.sup.Running()
	}
	for _, s := range rc.past.Setup.Services {
		able[s] = rc.ensemble.serving && quorum >= 2 && healthy && (s != fenced || !rc.power.broken) && rc.desk.paused[s] == 0
	}
	rc.past.Marks = append(rc.past.Marks, history.Mark{At: tick.Now(), Able: able})
}

// wrongly notes what no history tells.
func (rc *record) wrongly(what, text string) {
	rc.wrong = append(rc.wrong, history.Violation{What: what, At: tick.Now(), Text: text})
}

// violated tells whether a promise is known not to have been kept.
func (rc *record) violated() bool {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return len(rc.wrong) > 0
}
