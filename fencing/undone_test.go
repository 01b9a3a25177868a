package fencing

import (
	"errors"
	"testing"
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
