package fencing

import "strings"

// NotUndone says that nothing of a target is alive, but what it did beside processes is still there, such as an address or a mount. It is
// an ErrAlive: no delay proves anything.
type NotUndone struct{ Names []string }

func (e *NotUndone) Error() string {
	return "its processes are dead, but not undone: " + strings.Join(e.Names, ", ")
}

// Unwrap implements errors.Is.
func (e *NotUndone) Unwrap() error { return ErrAlive }
