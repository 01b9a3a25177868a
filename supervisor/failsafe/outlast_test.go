package failsafe

import (
	"testing"
	"time"

	"understudy/election"
)

// P1: a term that has outlasted its session has no other lease than the promises of before, until it has its lock again or is dead.
func TestALeaseEndsWithThePromisesUntilTheLockIsTakenAgain(t *testing.T) {
	const later, sooner = 3 * time.Hour, 2 * time.Hour
	g := ended(&deadlines{})
	g.Cover(named("db"), later)
	g.Cover(named("web"), sooner)
	g.Cover(named("late"), time.Minute) // its promises are over
	if end := g.covered(4 * time.Hour); end != sooner {
		t.Errorf("a lease until %v", end)
	}
	for service, want := range map[string]time.Duration{"db": later, "web": sooner, "late": 0, "other": 0} {
		if until := g.Covered(named(service)); until != want {
			t.Errorf("%s may be taken again until %v, want %v", service, until, want)
		}
	}
	g.Reclaimed(named("web"), &election.Claim{})
	if end := g.covered(4 * time.Hour); end != later || g.Covered(named("web")) != 0 {
		t.Errorf("once one has its lock again: a lease until %v", end)
	}
	g.Leave(named("db"))
	if end := g.covered(4 * time.Hour); end != 4*time.Hour {
		t.Errorf("once the other one is dead: a lease until %v", end)
	}
}

// A session that lives, or whose lease ZooKeeper has backed until now, keeps nothing beyond its end.
func TestOnlyAnExpiredSessionIsOutlasted(t *testing.T) {
	g := ended(&deadlines{})
	g.held, g.told = true, 2*time.Hour
	g.Cover(named("db"), 3*time.Hour)
	if until := g.Outlasts(named("db")); until != 0 {
		t.Errorf("outlasts a session that lives, until %v", until)
	}
}
