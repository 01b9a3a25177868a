package history

import (
	"fmt"
	"slices"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/store"
)

// Violation is a promise that was not kept.
type Violation struct {
	What    string // overlap, token, orphan, stuck, lost write, promoted; stranger, turned away, end
	Service string
	At      int64
	Text    string
}

// Check judges everything.
func (h *History) Check() []Violation {
	all := slices.Concat(h.overlaps(), h.denials(), h.tokens(), h.orphans(), h.stuck(), h.lost(), h.promoted())
	slices.SortStableFunc(all, func(a, b Violation) int { return int(a.At - b.At) })
	return all
}

func (h *History) overlaps() (all []Violation) {
	for _, service := range h.Setup.Services {
		for _, o := range kit.Overlaps(h.Of(service)) {
			all = append(all, Violation{"overlap", service, o.Latter.First, o.String()})
		}
	}
	return all
}

// promoted finds activations of a service that was paused.
func (h *History) promoted() (all []Violation) {
	for _, p := range h.Pauses {
		for _, r := range h.Of(p.Service) {
			if p.From < r.Token && r.Token < p.To {
				text := fmt.Sprintf("token %d on %s, while it was paused from %d to %d", r.Token, r.Node, p.From, p.To)
				all = append(all, Violation{"promoted", p.Service, r.First, text})
			}
		}
	}
	return all
}

func (h *History) denials() (all []Violation) {
	for _, d := range h.Denials {
		text := fmt.Sprintf("token %d on %s began while another run held the kernel's lock", d.Token, d.Node)
		all = append(all, Violation{"overlap", d.Service, d.At, text})
	}
	return all
}

func (h *History) tokens() (all []Violation) {
	for _, service := range h.Setup.Services {
		for _, fault := range kit.TokenFaults(h.Of(service)) {
			all = append(all, Violation{"token", service, fault.Run.First, fault.Text})
		}
	}
	return all
}

// orphans finds runs that went on after their supervisor's death.
func (h *History) orphans() (all []Violation) {
	for _, r := range h.Runs {
		life, ok := h.supervisor(r)
		if !ok {
			text := fmt.Sprintf("token %d on %s began when no supervisor had ever run there", r.Token, r.Node)
			all = append(all, Violation{"orphan", r.Service, r.First, text})
			continue
		}
		if over := time.Duration(r.Last - life.To); life.To != 0 && over > h.Setup.Bounds.Orphan {
			text := fmt.Sprintf("token %d on %s was alive %v after its supervisor, pid %d", r.Token, r.Node, over, life.Pid)
			all = append(all, Violation{"orphan", r.Service, life.To, text})
		}
	}
	return all
}

// supervisor is the newest one that had begun before the run.
func (h *History) supervisor(r Run) (newest Life, ok bool) {
	for _, life := range h.Lives {
		if life.Node == r.Node && life.From <= r.First && life.From >= newest.From {
			newest, ok = life, true
		}
	}
	return newest, ok
}

// span is a time, from and to.
type span struct{ from, to int64 }

// idle is when nobody ran a service.
func (h *History) idle(service string) (all []span) {
	seen := h.Began
	for _, r := range h.Of(service) {
		if r.First > seen {
			all = append(all, span{seen, r.First})
		}
		seen = max(seen, r.Last)
	}
	if h.Ended > seen {
		all = append(all, span{seen, h.Ended})
	}
	return all
}

// Waits is how long nobody ran a service although from the last interference on there was a quorum and a healthy node: the
// longest wait between any two marks, and when it began.
func (h *History) Waits(service string) (longest time.Duration, at int64) {
	idle := h.idle(service)
	for i, m := range h.Marks {
		if !m.Able[service] {
			continue
		}
		until := h.Ended
		if i+1 < len(h.Marks) {
			until = h.Marks[i+1].At
		}
		for _, s := range idle {
			from, to := max(s.from, m.At), min(s.to, until)
			if wait := time.Duration(to - from); wait > longest {
				longest, at = wait, from
			}
		}
	}
	return longest, at
}

func (h *History) stuck() (all []Violation) {
	for _, service := range h.Setup.Services {
		if wait, at := h.Waits(service); wait > h.Setup.Bounds.Progress {
			text := fmt.Sprintf("nobody ran for %v although somebody could", wait.Round(time.Millisecond))
			all = append(all, Violation{"stuck", service, at, text})
		}
	}
	return all
}

// lost finds writes that were acknowledged and are not in the journal, or not in order.
func (h *History) lost() (all []Violation) {
	taken, highest := map[string]int64{}, map[string]int64{}
	for _, w := range h.Writes {
		switch w.Verdict {
		case store.Taken:
			if w.N != taken[w.Run]+1 {
				text := fmt.Sprintf("write %d with token %d came after write %d", w.N, w.Token, taken[w.Run])
				all = append(all, Violation{"lost write", w.Service, w.At, text})
			}
			if w.Token < highest[w.Service] {
				text := fmt.Sprintf("a write with token %d was taken after one with %d", w.Token, highest[w.Service])
				all = append(all, Violation{"lost write", w.Service, w.At, text})
			}
			taken[w.Run], highest[w.Service] = w.N, max(w.Token, highest[w.Service])
		case store.Broken:
			text := fmt.Sprintf("the store never had what came before write %d with token %d", w.N, w.Token)
			all = append(all, Violation{"lost write", w.Service, w.At, text})
		}
	}
	for _, r := range h.Runs {
		if r.Acked > taken[r.ID] {
			text := fmt.Sprintf("token %d on %s had %d writes acknowledged, the store has %d", r.Token, r.Node, r.Acked, taken[r.ID])
			all = append(all, Violation{"lost write", r.Service, r.Last, text})
		}
	}
	return all
}
