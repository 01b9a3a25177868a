package fencing

import (
	"errors"
	"testing"

	"understudy/supervisor/testbed/must"
)

// A machine that has not undone what a program did has not proved it dead, and no delay does.
func TestWhatIsNotUndoneIsNotDead(t *testing.T) {
	s := Statement{Alive: true, Left: []string{"vip"}, Service: "db", Token: 1, Node: "a", Machine: "m1", Boot: "b1"}
	err := s.Convinces(Target{Service: "db", Token: 1, Node: "a", Machine: "m1", Boot: "b1"})
	left, ok := errors.AsType[*NotUndone](err)
	if !ok || !errors.Is(err, ErrAlive) || !errors.Is(err, ErrNotDead) || left.Names[0] != "vip" {
		t.Error(err)
	}
}

// That a machine has booted since proves nothing of what survives that, unless it has looked: an older version does not.
func TestABootIsNoProofOfWhatSurvivesIt(t *testing.T) {
	s := Statement{Dead: true, Service: "db", Token: 1, Node: "a", Machine: "m1", Boot: "b2"}
	target := Target{Service: "db", Token: 1, Node: "a", Machine: "m1", Boot: "b1"}
	must.Report(t, s.Convinces(target))
	target.Survive = []string{"role"}
	if err := s.Convinces(target); !errors.Is(err, ErrNotDead) {
		t.Error(err)
	}
	looked, same := s, s
	looked.Undone, same.Boot = true, "b1"
	must.Report(t, errors.Join(looked.Convinces(target), same.Convinces(target)))
}
