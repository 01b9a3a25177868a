// Testreport reads what `go test -json` prints, and tells a person about it: a line for each package, with how many tests were left
// out; and for a package that failed the output of the tests that failed, and once more the lines that say why.
//
// A test that failed by a bound on time alone says so with the attribute `late` (supervisor/testbed/kit). It is noted in a file, so that
// the caller can run it once more by itself. A test that failed by anything else is a finding, and is never noted. Where the race
// detector itself crashed, all tests of the package are noted.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	totals := flag.String("totals", "", "append the numbers of tests that passed, were skipped, and failed to this file")
	late := flag.String("late", "", "append the tests that failed by a bound on time alone to this file, a package and a test a line; without it they are failures")
	flag.Parse()
	r := &report{out: os.Stdout, repeats: *late != "", packages: map[string]*pkg{}}
	err := r.read(os.Stdin)
	if err == nil && *totals != "" {
		err = add(*totals, fmt.Sprintln(r.passed, r.skipped, r.failed))
	}
	if err == nil && len(r.late) > 0 {
		err = add(*late, strings.Join(r.late, "\n")+"\n")
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	case r.bad:
		os.Exit(1)
	case len(r.late) > 0:
		os.Exit(onlyLate)
	}
}

// onlyLate is the exit code when all that failed is to be run once more.
const onlyLate = 3

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, Test, Output, Key string
	Elapsed                            float64
}

// pkg is a package whose tests have not all ended.
type pkg struct {
	lines   []line
	failed  map[string]bool // tests
	late    map[string]bool // tests that said so; false once one said more
	open    map[string]bool // tests that have not ended
	skipped int
	wild    bool // something failed that is no test's failure alone: a panic, a data race
	crashed bool // the race detector itself did
}

type line struct{ test, text string }

type report struct {
	out                     io.Writer
	packages                map[string]*pkg
	passed, skipped, failed int
	repeats                 bool     // tests that are late are run once more
	late                    []string // "package test", outermost tests
	bad                     bool
}

// wild matches output of a test binary that failed by more than its tests' own verdict.
var wild = regexp.MustCompile(`^(panic|fatal error):|DATA RACE`)

// crash matches a failure of the race detector's own, as with testing/synctest (https://go.dev/issue/78156). It says nothing of the tests.
var crash = regexp.MustCompile(`^ThreadSanitizer: CHECK failed`)

// verdict matches the lines in which a test binary, or `go test`, says of a package what the report says itself.
var verdict = regexp.MustCompile(`^(PASS|FAIL|ok)\s`)

// why matches a line in which a test says why it failed.
var why = regexp.MustCompile(`^ +[^ ]+\.go:[0-9]+: `)

// story is how a test begins a line that tells what happened: no failure, whatever it is told after.
const story = "story: "

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
		p = &pkg{failed: map[string]bool{}, late: map[string]bool{}, open: map[string]bool{}}
		r.packages[e.Package] = p
	}
	if e.Test != "" {
		p.open[e.Test] = !slices.Contains([]string{"pass", "skip", "fail"}, e.Action)
	}
	switch {
	case e.Action == "attr":
		p.late[e.Test] = e.Key == "late"
	case e.Action == "output":
		p.wild = p.wild || wild.MatchString(e.Output)
		p.crashed = p.crashed || crash.MatchString(e.Output)
		if !strings.HasPrefix(e.Output, "=== ") && (e.Test != "" || !verdict.MatchString(e.Output)) {
			p.lines = append(p.lines, line{e.Test, e.Output})
		}
		p.says(e.Test, e.Output)
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
		late := p.onlyLate()
		if !r.repeats || late == nil {
			r.bad = true
			break
		}
		for _, name := range late {
			r.late = append(r.late, e.Package+" "+name)
		}
		r.failed -= len(p.failed) // they count when they are run once more
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

// says takes in a line of output. What a test says after it was late is more than lateness, unless it tells a story.
func (p *pkg) says(test, text string) {
	at := why.FindString(text)
	if text = strings.TrimPrefix(text, at); at != "" && !strings.HasPrefix(text, "late: ") && !strings.HasPrefix(text, story) {
		if p.late[test] {
			p.late[test] = false
		}
	}
}

// onlyLate returns the outermost tests to run once more; nil when something in this package failed by more than a bound on time.
func (p *pkg) onlyLate() (names []string) {
	if p.crashed && !p.wild && len(p.failed) == 0 {
		return []string{".*"}
	}
	for test, open := range p.open {
		if open && test != "" || p.wild {
			return nil
		}
	}
	for test := range p.failed {
		if !p.late[test] && !p.failsByParts(test) {
			return nil
		}
		if !strings.Contains(test, "/") {
			names = append(names, test)
		}
	}
	slices.Sort(names)
	return names
}

// failsByParts tells whether a test failed for no reason but that a part of it did.
func (p *pkg) failsByParts(test string) bool {
	if _, said := p.late[test]; said {
		return false
	}
	for _, l := range p.lines {
		if l.test == test && why.MatchString(l.text) && !strings.HasPrefix(why.ReplaceAllString(l.text, ""), story) {
			return false
		}
	}
	for part := range p.failed {
		if strings.HasPrefix(part, test+"/") {
			return true
		}
	}
	return false
}

// add appends to a file.
func add(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
