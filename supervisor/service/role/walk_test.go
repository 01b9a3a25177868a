package role

import "testing"

// witnessed is what somebody knows who has seen all events: the promises are the machine's, not its driver's.
type witnessed struct {
	State
	alive  bool // a program may be
	fenced bool // the previous active is known to be dead, since the newest claim
}

// Whatever events come, in whatever order, also those that no action may report.
func TestPromisesHoldWhateverEventsCome(t *testing.T) {
	seen := map[witnessed]bool{}
	var walk func(witnessed)
	walk = func(w witnessed) {
		if seen[w] {
			return
		}
		seen[w] = true
		for _, e := range events() {
			next, err := Step(w.State, e)
			now := witnessed{next, w.alive, w.fenced}
			bad := func(promise string) { t.Errorf("%s: %+v, %v -> %+v", promise, w, e.Kind, next) }
			if err == nil {
				switch {
				case e.Kind == Won:
					now.fenced = false
				case e.Kind == PreviousDead:
					now.fenced = true
				case e.Kind == Proved && w.Place != Discarding:
					now.alive = false
				}
			}
			switch {
			case next.Place == Running && !w.alive && !now.fenced:
				bad("P5, started beside who may be alive")
			case next.Place == Running && w.Place != Running:
				now.alive = true
			}
			switch {
			case now.alive && next.Place == Releasing:
				bad("P2, released before it is dead")
			case now.alive && next.Place >= Preparing && next.Place <= Fencing:
				bad("a candidate with a child that may run")
			case now.alive && next.Place == Away && !next.Carried && !next.TreeUnproved:
				bad("P2, a child that may run is forgotten")
			case next.Claimed && next.Place == Away:
				bad("a claim outlives its stay")
			case err != nil && next.Place == w.Place && w.Place != Away && w.Place != Retrying: // which waits
				bad("goes on as if nothing had been")
			}
			walk(now)
		}
	}
	walk(witnessed{})
	walk(witnessed{State: State{Carried: true}, alive: true, fenced: true})
	t.Log(len(seen), "states")
}

// Every pair has an answer, in any state: also in those that cannot be reached.
func TestEveryPairOfPlaceAndEventHasAnAnswer(t *testing.T) {
	for p := range Places {
		for then := Home; then <= Leave; then++ {
			for flags := range 64 {
				s := State{Place: p, Then: then}
				for i, flag := range []*bool{&s.Claimed, &s.Carried, &s.QuarantineDue, &s.BackOffDue, &s.BackOffUntilProof, &s.TreeUnproved} {
					*flag = flags>>i&1 == 1
				}
				for _, e := range events() {
					next, err := Step(s, e)
					if next.Place >= Places || next.Role() == "" {
						t.Fatalf("%+v, %v leads to %d", s, e.Kind, next.Place)
					}
					if err != nil && p.HasTree() && next.Place != Proving && !(next.Place == Away && next.TreeUnproved) {
						t.Fatalf("%+v, %v: %v does not end the term with proof: %+v", s, e.Kind, err, next)
					}
				}
			}
		}
	}
}
