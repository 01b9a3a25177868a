package sim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// promised is how a comment says that what follows it keeps P1, P2 or P5, on which it rests that no two programs run.
var promised = regexp.MustCompile(`\bP[125]\b`)

// TestEachTaggedFunctionIsSabotagedOrTested demands of each function, or type, with such a comment that a sabotage breaks it, or that
// testdata/tagged.tsv names tests that were seen to fail without what the comment is about. The comments of packages only tell of the
// promises.
func TestEachTaggedFunctionIsSabotagedOrTested(t *testing.T) {
	module, err := filepath.Abs("../../..")
	must.OK(t, err)
	listed := map[string]string{}
	list, err := os.ReadFile("testdata/tagged.tsv")
	must.OK(t, err)
	for line := range strings.Lines(string(list)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 2 || cells[1] == "" {
			t.Fatalf("not two cells: %q", line)
		}
		listed[cells[0]] = cells[1]
	}
	broken := map[string]bool{}
	for _, s := range sabotages {
		for _, c := range s.changes {
			text := map[string]string{}
			path := filepath.Join(module, c.file)
			if (patch{root: module, changes: []change{c}}).apply(text) != nil {
				continue // TestEverySabotageFitsTheCode tells it
			}
			before, err := os.ReadFile(path)
			must.OK(t, err)
			at := 0
			for at < len(before) && at < len(text[path]) && before[at] == text[path][at] {
				at++
			}
			for _, d := range declared(t, path) {
				if d.from <= at && at < d.to {
					broken[c.file+" "+d.name] = true
				}
			}
		}
	}
	var tests strings.Builder
	tagged := map[string]bool{}
	must.OK(t, filepath.WalkDir(module, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testbed" || strings.HasPrefix(e.Name(), ".")):
			return fs.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			tests.Write(text)
			return err
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := filepath.Rel(module, path)
		for _, d := range declared(t, path) {
			if d.tagged {
				tagged[file+" "+d.name] = true
			}
		}
		return err
	}))
	for name := range tagged {
		if !broken[name] && listed[name] == "" {
			t.Errorf("%s keeps a promise: no sabotage changes it, and testdata/tagged.tsv has no tests that fail without it", name)
		}
	}
	for name, by := range listed {
		if !tagged[name] {
			t.Errorf("testdata/tagged.tsv: %s has no such comment", name)
		}
		for _, test := range strings.Fields(by) {
			if !strings.Contains(tests.String(), "\nfunc "+test+"(") {
				t.Errorf("testdata/tagged.tsv: %s: there is no %s", name, test)
			}
		}
	}
}

// declaration is a function or a type, with its comment.
type declaration struct {
	name     string
	from, to int
	tagged   bool
}

func declared(t *testing.T, path string) (all []declaration) {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	must.OK(t, err)
	for _, d := range f.Decls {
		from, name, doc := d.Pos(), "", (*ast.CommentGroup)(nil)
		switch d := d.(type) {
		case *ast.FuncDecl:
			name, doc = d.Name.Name, d.Doc
		case *ast.GenDecl:
			doc = d.Doc
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					name = s.Name.Name
				}
			}
		}
		if doc != nil {
			from = doc.Pos()
		}
		all = append(all, declaration{name: name, from: files.Position(from).Offset, to: files.Position(d.End()).Offset})
	}
	for _, c := range f.Comments {
		at := files.Position(c.Pos()).Offset
		i := slices.IndexFunc(all, func(d declaration) bool { return d.from <= at && at < d.to })
		if i >= 0 && promised.MatchString(c.Text()) {
			all[i].tagged = true
		}
	}
	return all
}
