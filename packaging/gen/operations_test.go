package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// An operator who searches docs/operations.md for a line of the log at WARN or ERROR finds it, up to its first colon or semicolon.
func TestEachWarningAndErrorIsExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	must.OK(t, err)
	lines := logLines(t)
	if len(lines) < 100 {
		t.Errorf("only %d lines were found", len(lines))
	}
	for _, line := range lines {
		head := line
		if i := strings.IndexAny(line, ":;("); i > 0 {
			head = strings.TrimSpace(line[:i])
		}
		if !strings.Contains(string(page), "| `"+head) {
			t.Errorf("docs/operations.md does not explain %q", head)
		}
	}
	for row := range strings.Lines(string(page)) {
		text, ok := strings.CutPrefix(row, "| `")
		if !ok {
			continue
		}
		text, _, _ = strings.Cut(text, "`")
		said := func(line string) bool { return strings.HasPrefix(line, text) || strings.HasPrefix(text, line) }
		if strings.Contains(logPart(string(page)), row) && !slices.ContainsFunc(lines, said) {
			t.Errorf("docs/operations.md explains %q, which no line of the log says", text)
		}
	}
}

// A row that sends the reader to a field of the line, `error` or `why`, is about a line that has it.
func TestFieldsThatTheRowsNameAreInTheLines(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	must.OK(t, err)
	rows := map[string]string{}
	for row := range strings.Lines(logPart(string(page))) {
		if text, ok := strings.CutPrefix(row, "| `"); ok {
			text, rest, _ := strings.Cut(text, "`")
			rows[text] = rest
		}
	}
	checked := 0
	look := func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || call.Ellipsis.IsValid() {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); !ok || !slices.Contains([]string{"Warn", "Error"}, f.Sel.Name) {
			return true
		}
		line, fields := textOf(call.Args[0]), []string{}
		for _, arg := range call.Args[1:] {
			fields = append(fields, textOf(arg))
		}
		row := "" // that of the line, or of its beginning
		for text := range rows {
			if line != "" && strings.HasPrefix(line, text) && len(text) > len(row) {
				row = text
			}
		}
		for _, field := range []string{"error", "why"} {
			if !strings.Contains(rows[row], "`"+field+"`") {
				continue
			}
			if checked++; !slices.Contains(fields, field) {
				t.Errorf("docs/operations.md names the field %s of %q, which has %q", field, line, fields)
			}
		}
		return true
	}
	for _, file := range sources(t, token.NewFileSet()) {
		ast.Inspect(file, look)
	}
	if checked < 20 {
		t.Errorf("only %d fields were looked at", checked)
	}
}

// logPart is the part of the page about lines of the log.
func logPart(page string) string {
	_, rest, _ := strings.Cut(page, "\n## By log line\n")
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

// logLines are the texts that the supervisor logs at WARN or ERROR.
func logLines(t *testing.T) (all []string) {
	t.Helper()
	for _, file := range sources(t, token.NewFileSet()) {
		all = append(all, linesOf(file)...)
	}
	return all
}

// sources are the files of what is run, without tests.
func sources(t *testing.T, files *token.FileSet) (all []*ast.File) {
	t.Helper()
	for _, root := range []string{"../../supervisor", "../../election", "../../fencing"} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && slices.Contains([]string{"testbed", "zkmem", "demo"}, e.Name()):
				return filepath.SkipDir
			case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(files, path, nil, 0)
			all = append(all, file)
			return err
		})
		must.OK(t, err)
	}
	return all
}

func linesOf(file *ast.File) (all []string) {
	add := func(e ast.Expr) {
		if line := textOf(e); line != "" {
			all = append(all, line)
			return
		}
		if name, ok := e.(*ast.Ident); ok && name.Obj != nil { // one of the texts that a case has set
			ast.Inspect(file, func(n ast.Node) bool {
				if set, ok := n.(*ast.AssignStmt); ok && len(set.Lhs) == 1 && len(set.Rhs) == 1 {
					if to, ok := set.Lhs[0].(*ast.Ident); ok && to.Obj == name.Obj && textOf(set.Rhs[0]) != "" {
						all = append(all, textOf(set.Rhs[0]))
					}
				}
				return true
			})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if len(n.Args) > 0 && slices.Contains([]string{"Warn", "Error", "line"}, nameOf(n.Fun)) {
				add(n.Args[0])
			}
			if len(n.Args) > 1 && slices.Contains([]string{"Warn", "Error"}, nameOf(n.Args[0])) {
				add(n.Args[1]) // the line is written later, by the method that is passed with it
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Words" {
				add(n.Value)
			}
		}
		return true
	})
	return all
}

// nameOf is the last part of the name of a function or method.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// textOf is a constant text, as far as it stands where it is used or in the same file.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value) // a number is no text
		return text
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	case *ast.Ident:
		if e.Obj == nil {
			return ""
		}
		if spec, ok := e.Obj.Decl.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			return textOf(spec.Values[0])
		}
	}
	return ""
}
