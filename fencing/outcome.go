package fencing

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outcome says how a target was proved dead.
type Outcome struct {
	By       string // Local's proof, a method's name, ByGrace or ByConfirmed; empty if fencing failed
	Took     time.Duration
	Attempts []Attempt
}

// Story says in a few words how a target was proved dead, and which methods failed.
func (o Outcome) Story() string {
	var failed []string
	for _, a := range o.Attempts {
		if a.Err != nil && a.Method != local && !slices.Contains(failed, a.Method) {
			failed = append(failed, a.Method)
		}
	}
	if len(failed) == 0 || o.By == "" {
		return o.By
	}
	return o.By + ", after " + strings.Join(failed, ", ") + " failed"
}

// Told has a line for each attempt.
func (o Outcome) Told() string {
	var b strings.Builder
	for _, a := range o.Attempts {
		result := "succeeded"
		if a.Err != nil {
			result = "failed: " + strings.ReplaceAll(a.Err.Error(), "\n", "; ")
		}
		fmt.Fprintf(&b, "%s %s\n", a.Method, result)
	}
	return b.String()
}

// local is the name of this machine's own attempt.
const local = "local"

// Attempt is one attempt.
type Attempt struct {
	Method string
	Err    error // nil: it succeeded
	Took   time.Duration
}
