package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// events makes events of one package, each given as "action test output", or "attr test key".
func events(all ...string) string {
	var b strings.Builder
	for _, e := range all {
		action, rest, _ := strings.Cut(e, " ")
		test, more, _ := strings.Cut(rest, " ")
		b.WriteString(`{"Action":"` + action + `","Package":"p"`)
		if test != "" {
			b.WriteString(`,"Test":"` + test + `"`)
		}
		if action == "attr" {
			b.WriteString(`,"Key":"` + more + `","Value":"true"`)
		} else if more != "" {
			b.WriteString(`,"Output":"` + more + `\n"`)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func read(t *testing.T, all ...string) (r *report, text string) {
	t.Helper()
	var out bytes.Buffer
	r = &report{out: &out, packages: map[string]*pkg{}}
	if err := r.read(strings.NewReader(events(all...))); err != nil {
		t.Fatal(err)
	}
	return r, out.String()
}

func TestWhatIsNotWellIsAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		bad    bool
	}{
		"all pass":               {[]string{"pass A", "pass"}, false},
		"one is left out":        {[]string{"skip A", "pass"}, false},
		"there are none":         {[]string{"skip"}, false},
		"one fails":              {[]string{"fail A", "pass B", "fail"}, true},
		"the binary fails alone": {[]string{"pass A", "output  FAIL", "fail"}, true},
		"it never ends":          {[]string{"pass A"}, true},
		"it cannot be built":     {[]string{"build-fail", "fail"}, true},
	} {
		if r, _ := read(t, c.events...); r.bad != c.bad {
			t.Errorf("%s: %v", name, r.bad)
		}
	}
}

func TestFailedTestsAreToldAndTheOthersAreNot(t *testing.T) {
	_, text := read(t, "output A     a_test.go:1: quiet", "pass A", "output B     b_test.go:2: loud", "fail B", "fail")
	if want := "    b_test.go:2: loud\nB:     b_test.go:2: loud\nFAIL\tp\t0.0s\n"; text != want {
		t.Errorf("%s", text)
	}
	if _, text := read(t, "output A     panic: oh", "pass A", "output B panic: oh", "fail B", "fail"); !strings.Contains(text, "    panic: oh\n") {
		t.Errorf("of a package that panics all is told, and not\n%s", text)
	}
	if _, text := read(t, "skip A", "skip B", "pass"); text != "ok  \tp\t0.0s, 2 tests left out\n" {
		t.Errorf("%s", text)
	}
}

// A test that failed by a bound on time alone is run once more. Everything else is a finding.
func TestOnlyLateTestsAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		late   []string
		bad    bool
	}{
		"all pass":                {[]string{"pass A", "pass"}, nil, false},
		"late":                    {[]string{"attr A late", "fail A", "pass B", "fail"}, []string{"p A"}, false},
		"late in a part of it":    {[]string{"attr A/x late", "fail A/x", "fail A", "fail"}, []string{"p A"}, false},
		"two are late":            {[]string{"attr B late", "fail B", "attr A late", "fail A", "fail"}, []string{"p A", "p B"}, false},
		"one part is not late":    {[]string{"attr A/x late", "fail A/x", "fail A/y", "fail A", "fail"}, nil, true},
		"not late":                {[]string{"fail A", "fail"}, nil, true},
		"late beside a finding":   {[]string{"attr A late", "fail A", "fail B", "fail"}, nil, true},
		"late and a panic":        {[]string{"attr A late", "fail A", "output A panic: oh", "fail"}, nil, true},
		"late and a data race":    {[]string{"attr A late", "fail A", "output A WARNING: DATA RACE", "fail"}, nil, true},
		"the binary fails alone":  {[]string{"pass A", "output  FAIL", "fail"}, nil, true},
		"the detector crashes":    {[]string{"pass A", "run B", "output  ThreadSanitizer: CHECK failed: x", "fail"}, []string{"p .*"}, false},
		"it crashes, A failed":    {[]string{"fail A", "run B", "output  ThreadSanitizer: CHECK failed: x", "fail"}, nil, true},
		"it ends in the middle":   {[]string{"attr A late", "fail A", "run B", "fail"}, nil, true},
		"the parent says more":    {[]string{"attr A/x late", "fail A/x", "output A     a_test.go:1: oh", "fail A", "fail"}, nil, true},
		"it says more at its end": {[]string{"attr A late", "output A     a_test.go:1: late: oh", "output A     a_test.go:2: a leak", "fail A", "fail"}, nil, true},
		"it tells its story":      {[]string{"output A     a_test.go:1: so far", "attr A late", "output A     a_test.go:1: late: oh", "output A     a_test.go:2: story: it", "fail A", "fail"}, []string{"p A"}, false},
	} {
		r := &report{out: &bytes.Buffer{}, repeats: true, packages: map[string]*pkg{}}
		if err := r.read(strings.NewReader(events(c.events...))); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.late, c.late) || r.bad != c.bad {
			t.Errorf("%s: late %q, bad %v; want %q, %v", name, r.late, r.bad, c.late, c.bad)
		}
	}
	if r, _ := read(t, "attr A late", "fail A", "fail"); !r.bad || r.late != nil {
		t.Errorf("late where nothing is repeated: bad %v, late %q", r.bad, r.late)
	}
}

func TestTotalsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "totals")
	for range 2 {
		if err := add(file, "1 1 1\n"); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "1 1 1\n1 1 1\n" {
		t.Errorf("%q, %v", text, err)
	}
	if r, _ := read(t, "pass A", "skip B", "fail C", "fail"); r.passed != 1 || r.skipped != 1 || r.failed != 1 {
		t.Errorf("%d passed, %d skipped, %d failed", r.passed, r.skipped, r.failed)
	}
}
