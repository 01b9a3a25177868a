package kit

import (
	"testing"
	"time"
)

const pollEvery = 10 * time.Millisecond

// Reached waits for a fact and tells whether it came to be within the limit.
func Reached(limit time.Duration, fact func() bool) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	again := time.NewTicker(pollEvery)
	defer again.Stop()
	for {
		if fact() {
			return true
		}
		select {
		case <-again.C:
		case <-deadline.C:
			return fact()
		}
	}
}

// Until waits for a fact; the test ends when it does not come to be within the limit. It returns how long it took.
func Until(tb testing.TB, limit time.Duration, what string, fact func() bool) time.Duration {
	tb.Helper()
	began := time.Now()
	if !Reached(limit, fact) {
		tb.Fatalf("after %v still not so: %s", limit, what)
	}
	return time.Since(began)
}

// Throughout fails the test when a fact ceases to hold within a while.
func Throughout(tb testing.TB, while time.Duration, what string, fact func() bool) {
	tb.Helper()
	began := time.Now()
	if Reached(while, func() bool { return !fact() }) {
		tb.Fatalf("no longer so after %v of %v: %s", time.Since(began).Round(time.Millisecond), while, what)
	}
}
