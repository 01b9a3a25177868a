package sim

import "slices"

// Shrink drops what a violation does not need: first whole episodes, then faults, in halves and one by one. again runs a plan;
// budget bounds how often. What comes back breaks the same promise.
func Shrink(r *Result, budget int, again func(*Plan) *Result) *Result {
	s := &shrinker{best: r, budget: budget, again: again}
	last := r.Episode
	s.try(func(p *Plan) { p.Episodes = p.Episodes[:min(last, len(p.Episodes))] })
	for before := -1; before != s.best.Plan.weight() && s.budget > 0; {
		before = s.best.Plan.weight()
		s.thin(func(p *Plan) int { return len(p.Episodes) }, func(p *Plan, from, to int) {
			p.Episodes = slices.Delete(p.Episodes, from, to)
		})
		for e := range s.best.Plan.Episodes {
			s.thin(func(p *Plan) int { return len(p.Episodes[e].Faults) }, func(p *Plan, from, to int) {
				p.Episodes[e].Faults = slices.Delete(p.Episodes[e].Faults, from, to)
			})
		}
	}
	return s.best
}

type shrinker struct {
	best   *Result
	budget int
	again  func(*Plan) *Result
}

// try runs a smaller plan, and keeps it if it breaks the same promise.
func (s *shrinker) try(change func(*Plan)) bool {
	if s.budget == 0 {
		return false
	}
	s.budget--
	p := s.best.Plan.clone()
	change(p)
	r := s.again(p)
	if r.Violation == nil || r.Violation.Promise != s.best.Violation.Promise {
		return false
	}
	s.best = r
	return true
}

// thin drops ever smaller parts of a list.
func (s *shrinker) thin(length func(*Plan) int, drop func(p *Plan, from, to int)) {
	for size := length(s.best.Plan); size > 0; size /= 2 {
		for from := 0; from < length(s.best.Plan); {
			to := min(from+size, length(s.best.Plan))
			if !s.try(func(p *Plan) { drop(p, from, to) }) {
				from = to
			}
			if s.budget == 0 {
				return
			}
		}
	}
}

func (p *Plan) clone() *Plan {
	q := *p
	q.Episodes = slices.Clone(p.Episodes)
	for n := range q.Episodes {
		q.Episodes[n].Faults = slices.Clone(q.Episodes[n].Faults)
	}
	return &q
}

// weight is how much there is in a plan.
func (p *Plan) weight() (n int) {
	for _, e := range p.Episodes {
		n += 1 + len(e.Faults)
	}
	return n
}
