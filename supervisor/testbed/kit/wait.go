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

// Until waits for a fact; the test ends when it does not come to be within the limit. It returns how long it took. It looks on after the
// limit: only a fact that comes to be after all is late.
func Until(tb testing.TB, limit time.Duration, what string, fact func() bool) time.Duration {
	tb.Helper()
	began := time.Now()
	if !Reached(limit, fact) {
		if Reached(min(limit, Soon/2), fact) {
			Late(tb, "after %v, not %v, it is so: %s", time.Since(began).Round(time.Millisecond), limit, what)
		}
		tb.Fatalf("after %v still not so: %s", limit, what)
	}
	return time.Since(began)
}

// Late ends a test that failed by a bound on real time alone. packaging/test.sh runs such a test once more, by itself, unless something
// else failed before, or fails when the test clears away. A bound that is a promise, such as a lease's end, is no matter of time alone.
func Late(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if !tb.Failed() {
		tb.Attr("late", "true")
	}
	tb.Fatalf("late: "+format, args...)
}

// Throughout fails the test when a fact ceases to hold within a while.
func Throughout(tb testing.TB, while time.Duration, what string, fact func() bool) {
	tb.Helper()
	began := time.Now()
	if Reached(while, func() bool { return !fact() }) {
		tb.Fatalf("no longer so after %v of %v: %s", time.Since(began).Round(time.Millisecond), while, what)
	}
}
