package kit

import "testing"

// The attributes of a failed test that packaging/testreport reads.
const (
	late   = "late"   // it failed by a bound on time, and by nothing else before
	broken = "broken" // a promise was broken
)

// Late ends a test that failed by a bound on real time alone: the runner may run it once more, by itself. Exceeding a bound that is
// a promise, such as a lease's end, is no matter of time alone.
func Late(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if !tb.Failed() {
		tb.Attr(late, "true")
	}
	tb.Fatalf("late: "+format, args...)
}

// Broken fails a test in which a promise was broken. Such a test is never run again: it is a finding.
func Broken(tb testing.TB, format string, args ...any) {
	tb.Helper()
	tb.Attr(broken, "true")
	tb.Errorf(format, args...)
}
