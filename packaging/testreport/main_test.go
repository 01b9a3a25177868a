package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events makes events of one package, each given as "action test output".
func events(all ...string) string {
	var b strings.Builder
	for _, e := range all {
		action, rest, _ := strings.Cut(e, " ")
		test, more, _ := strings.Cut(rest, " ")
		b.WriteString(`{"Action":"` + action + `","Package":"p"`)
		if test != "" {
			b.WriteString(`,"Test":"` + test + `"`)
		}
		if more != "" {
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

func TestTotalsAreKept(t *testing.T) {
	r, _ := read(t, "pass A", "skip B", "fail C", "fail")
	file := filepath.Join(t.TempDir(), "totals")
	for range 2 {
		if err := r.keep(file); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "1 1 1\n1 1 1\n" {
		t.Errorf("%q, %v", text, err)
	}
}
