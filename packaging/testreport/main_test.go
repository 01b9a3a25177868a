package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lines makes events of one package, each given as "action test key-or-output".
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

// Only a test that failed by a bound on time alone is run again; everything else is a finding.
func TestOnlyLateTestsAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		again  []string
		failed bool
	}{
		"all pass":                {[]string{"pass A", "pass"}, nil, false},
		"late":                    {[]string{"attr A late", "fail A", "pass B", "fail"}, []string{"p A"}, false},
		"late in a part of it":    {[]string{"attr A/x late", "fail A/x", "fail A", "fail"}, []string{"p A"}, false},
		"one part is not late":    {[]string{"attr A/x late", "fail A/x", "fail A/y", "fail A", "fail"}, nil, true},
		"a promise broken too":    {[]string{"attr A late", "attr A broken", "fail A", "fail"}, nil, true},
		"broken in the parent":    {[]string{"attr A/x late", "fail A/x", "attr A broken", "fail A", "fail"}, nil, true},
		"not late":                {[]string{"fail A", "fail"}, nil, true},
		"late beside a finding":   {[]string{"attr A late", "fail A", "fail B", "fail"}, nil, true},
		"late and a panic":        {[]string{"attr A late", "fail A", "output A panic: oh", "fail"}, nil, true},
		"late and a data race":    {[]string{"attr A late", "fail A", "output A WARNING: DATA RACE", "fail"}, nil, true},
		"the binary fails alone":  {[]string{"pass A", "output  FAIL", "fail"}, nil, true},
		"it never ends":           {[]string{"pass A"}, nil, true},
		"it ends in the middle":   {[]string{"attr A late", "fail A", "run B", "fail"}, nil, true},
		"the parent says more":    {[]string{"attr A/x late", "fail A/x", "output A     a_test.go:1: oh", "fail A", "fail"}, nil, true},
		"it says more at its end": {[]string{"attr A late", "output A     a_test.go:1: late: oh", "output A     a_test.go:2: a leak", "fail A", "fail"}, nil, true},
		"it tells its story":      {[]string{"output A     a_test.go:1: so far", "attr A late", "output A     a_test.go:1: late: oh", "output A     a_test.go:2: story: it", "fail A", "fail"}, []string{"p A"}, false},
		"it cannot be built":      {[]string{"build-fail", "fail"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &report{out: &bytes.Buffer{}, mayRepeat: true, packages: map[string]*pkg{}}
			if err := r.read(strings.NewReader(events(c.events...))); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(r.late, c.again) || r.failed != c.failed {
				t.Errorf("again %q, failed %v; want %q, %v", r.late, r.failed, c.again, c.failed)
			}
		})
	}
}

// Without a file for them, late tests are failures.
func TestLateTestsFailWhereNothingIsRepeated(t *testing.T) {
	r := &report{out: &bytes.Buffer{}, packages: map[string]*pkg{}}
	if err := r.read(strings.NewReader(events("attr A late", "fail A", "fail"))); err != nil || !r.failed || r.late != nil {
		t.Errorf("%v, failed %v, again %q", err, r.failed, r.late)
	}
}

func TestFailedTestsAreToldAndTheOthersAreNot(t *testing.T) {
	var out bytes.Buffer
	r := &report{out: &out, mayRepeat: true, packages: map[string]*pkg{}}
	err := r.read(strings.NewReader(events("output A     a_test.go:1: quiet", "pass A", "output B     b_test.go:2: loud", "fail B", "fail")))
	want := "    b_test.go:2: loud\nB:     b_test.go:2: loud\nFAIL\tp\t0.0s\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestTotalsAndLateTestsAreKept(t *testing.T) {
	totals, again := filepath.Join(t.TempDir(), "totals"), filepath.Join(t.TempDir(), "late")
	r := &report{out: &bytes.Buffer{}, mayRepeat: true, packages: map[string]*pkg{}}
	if err := r.read(strings.NewReader(events("pass A", "skip B", "attr C late", "fail C", "fail"))); err != nil {
		t.Fatal(err)
	}
	if err := r.write(totals, again); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{totals: "1 1 0\n", again: "p C\n"} {
		if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%q, %v", text, err)
		}
	}
}
