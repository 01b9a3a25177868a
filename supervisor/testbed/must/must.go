// Package must ends a test where something fails that the test is not about.
package must

import "testing"

// OK ends a test at an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Report fails a test at an error, and lets it go on.
func Report(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
