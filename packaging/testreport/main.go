// Testreport reads what `go test -json` prints, and tells a person about it: a line for each package, with how many tests were left
// out; and for a package that failed the output of the tests that failed, and once more the lines that say why.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

func main() {
	totals := flag.String("totals", "", "append the numbers of tests that passed, were skipped, and failed to this file")
	flag.Parse()
	r := &report{out: os.Stdout, packages: map[string]*pkg{}}
	err := r.read(os.Stdin)
	if err == nil && *totals != "" {
		err = r.keep(*totals)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	case r.bad:
		os.Exit(1)
	}
}

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// pkg is a package whose tests have not all ended.
type pkg struct {
	lines   []line
	failed  map[string]bool // tests
	skipped int
	wild    bool // something failed that is no test's failure alone: a panic, a data race
}

type line struct{ test, text string }

type report struct {
	out                     io.Writer
	packages                map[string]*pkg
	passed, skipped, failed int
	bad                     bool
}

// wild matches output of a test binary that failed by more than its tests' own verdict.
var wild = regexp.MustCompile(`^(panic|fatal error):|DATA RACE`)

// verdict matches the lines in which a test binary, or `go test`, says of a package what the report says itself.
var verdict = regexp.MustCompile(`^(PASS|FAIL|ok)\s`)

// why matches a line in which a test says why it failed.
var why = regexp.MustCompile(`^ +[^ ]+\.go:[0-9]+: `)

func (r *report) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(r.out, lines.Text()) // not from a test: `go test` itself
			continue
		}
		r.take(e)
	}
	for name := range r.packages {
		fmt.Fprintf(r.out, "FAIL\t%s: its tests did not end\n", name)
		r.bad = true
	}
	return lines.Err()
}

// take takes one event.
func (r *report) take(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return
	case "build-fail":
		r.bad = true
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &pkg{failed: map[string]bool{}}
		r.packages[e.Package] = p
	}
	switch {
	case e.Action == "output":
		p.wild = p.wild || wild.MatchString(e.Output)
		if !strings.HasPrefix(e.Output, "=== ") && (e.Test != "" || !verdict.MatchString(e.Output)) {
			p.lines = append(p.lines, line{e.Test, e.Output})
		}
	case e.Test == "":
		r.ended(p, e)
	case e.Action == "pass":
		r.passed++
	case e.Action == "skip":
		r.skipped++
		p.skipped++
	case e.Action == "fail":
		r.failed++
		p.failed[e.Test] = true
	}
}

// ended takes the end of a package.
func (r *report) ended(p *pkg, e event) {
	switch e.Action {
	case "pass":
		left := ""
		if p.skipped > 0 {
			left = fmt.Sprintf(", %d tests left out", p.skipped)
		}
		fmt.Fprintf(r.out, "ok  \t%s\t%.1fs%s\n", e.Package, e.Elapsed, left)
	case "fail":
		p.tell(r.out)
		fmt.Fprintf(r.out, "FAIL\t%s\t%.1fs\n", e.Package, e.Elapsed)
		r.bad = true
	case "skip": // it has no tests
	default:
		return
	}
	delete(r.packages, e.Package)
}

// tell prints the output of the tests that failed, and at the end once more the lines that say why.
func (p *pkg) tell(out io.Writer) {
	for _, l := range p.lines {
		outermost, _, _ := strings.Cut(l.test, "/")
		if l.test == "" || p.wild || len(p.failed) == 0 || p.failed[l.test] || p.failed[outermost] {
			fmt.Fprint(out, l.text)
		}
	}
	for _, l := range p.lines {
		if p.failed[l.test] && why.MatchString(l.text) {
			fmt.Fprintf(out, "%s: %.500s\n", l.test, strings.TrimSuffix(l.text, "\n"))
		}
	}
}

// keep appends the totals to a file.
func (r *report) keep(file string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, r.passed, r.skipped, r.failed)
	return err
}
