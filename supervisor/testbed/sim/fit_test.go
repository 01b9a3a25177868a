package sim

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// TestEverySabotageFitsTheCode tells of a rename or a rewrite that a sabotage has to follow, without committing any.
func TestEverySabotageFitsTheCode(t *testing.T) {
	module, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sabotages {
		text := map[string]string{}
		if err := (patch{root: module, changes: s.changes}).apply(text); err != nil {
			t.Errorf("%s: %v", s.what, err)
		}
		for path, whole := range text {
			if _, err := parser.ParseFile(token.NewFileSet(), path, whole, parser.AllErrors); err != nil {
				t.Errorf("%s: %v", s.what, err)
			}
		}
	}
}

// TestThePageHasEverySabotage: the seed that it gives is tried first.
func TestThePageHasEverySabotage(t *testing.T) {
	for _, s := range sabotages {
		if known(s.what) == 0 {
			t.Errorf("testdata/sabotages.tsv has no seed for %q", s.what)
		}
	}
}

// testdata/tested.tsv has what seeds notice too rarely: the sabotage, the tests that fail for it, and the mutation of a model that does.
func TestWhatOnlyTestsNoticeIsTested(t *testing.T) {
	list, err := os.ReadFile("testdata/tested.tsv")
	must.OK(t, err)
	var tests, models strings.Builder
	gather := func(to *strings.Builder, root, end string) {
		must.OK(t, filepath.WalkDir(filepath.Join("../../..", root), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, end) {
				return err
			}
			text, err := os.ReadFile(path)
			to.Write(text)
			return err
		}))
	}
	for _, root := range []string{"supervisor", "election"} {
		gather(&tests, root, "_test.go")
	}
	gather(&models, "docs/model", ".pml")
	for line := range strings.Lines(string(list)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 3 || cells[1] == "" {
			t.Fatalf("not three cells: %q", line)
		}
		for _, name := range strings.Fields(cells[1]) {
			if !strings.Contains(tests.String(), "\nfunc "+name+"(") {
				t.Errorf("%s: there is no %s", cells[0], name)
			}
		}
		if !strings.Contains(models.String(), cells[2]) {
			t.Errorf("%s: no model has the mutation %s", cells[0], cells[2])
		}
	}
}

// A fault that can be drawn can happen.
func TestEachKindOfFaultIsDispatched(t *testing.T) {
	ne := newNemesis(&world{})
	rows := ne.dispatch()
	for _, k := range Kinds() {
		if rows[k] == nil {
			t.Errorf("%s: it has no row", k)
		}
	}
	if len(rows) != len(Kinds()) {
		t.Errorf("%d rows for %d kinds", len(rows), len(Kinds()))
	}
}
