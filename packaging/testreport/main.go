// Testreport reads what `go test -json` prints, and tells a person about it: a line for each package, and for a package that failed
// the output of the tests that failed, and once more the lines that say why.
//
// A test that failed by a bound on time alone is no finding yet: it is noted in a file, to be run once more by itself. A test says
// so with the attribute `late`; one in which a promise was broken, with the attribute `broken`, is never noted.
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
	again := flag.String("late", "", "append the tests that failed by a bound on time alone to this file: a package and a test a line; without it they are failures")
	flag.Parse()
	r := &report{out: os.Stdout, mayRepeat: *again != "", packages: map[string]*pkg{}}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if err := r.write(*totals, *again); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	switch {
	case r.failed:
		os.Exit(1)
	case len(r.late) > 0:
		os.Exit(onlyLate)
	}
}

// onlyLate is the exit code when all that failed is to be run once more.
const onlyLate = 3

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output, Key, Value string
	Elapsed                                               float64
}

// pkg is a package whose tests have not all ended.
type pkg struct {
	lines  []line
	tests  map[string]*test
	failed []string // the tests that failed, in the order of their ends
	wild   bool     // something failed that is no test's failure alone: a panic, a data race
}

type line struct{ test, text string }

type test struct {
	late, broken, failed bool
	told                 bool // it has said that it is late: that was the end of it, but for what is cleared away
	more                 bool // it has said something after that which is no story
	own                  bool // it has said something itself
	ended                bool
}

type report struct {
	out                   io.Writer
	mayRepeat             bool
	packages              map[string]*pkg
	passed, skipped, lost int
	late                  []string // "package test"
	failed                bool
}

// wild matches output of a test binary that failed by more than its tests' own verdict.
var wild = regexp.MustCompile(`^(panic|fatal error):|DATA RACE`)

// verdict matches the lines in which a test binary, or `go test`, says of a package what the report says itself.
var verdict = regexp.MustCompile(`^(PASS|FAIL|ok)\s`)

// story is how a line begins that tells what happened, and is no failure, in what is printed when a failed test is cleared away.
const story = "story: "

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
	if err := lines.Err(); err != nil {
		return err
	}
	for name := range r.packages {
		fmt.Fprintf(r.out, "FAIL\t%s: its tests did not end\n", name)
		r.failed = true
	}
	return nil
}

// take takes one event.
func (r *report) take(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return
	case "build-fail":
		r.failed = true
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &pkg{tests: map[string]*test{}}
		r.packages[e.Package] = p
	}
	if e.Test == "" {
		r.ofPackage(p, e)
		return
	}
	t := p.tests[e.Test]
	if t == nil {
		t = &test{}
		p.tests[e.Test] = t
	}
	switch e.Action {
	case "output":
		p.wild = p.wild || wild.MatchString(e.Output)
		if !strings.HasPrefix(e.Output, "=== ") {
			p.lines = append(p.lines, line{e.Test, e.Output})
		}
		if at := why.FindString(e.Output); at != "" {
			t.says(e.Output[len(at):])
		}
	case "attr":
		t.late = t.late || e.Key == "late"
		t.broken = t.broken || e.Key == "broken"
	case "pass":
		r.passed++
		t.ended = true
	case "skip":
		r.skipped++
		t.ended = true
	case "fail":
		r.lost++
		t.failed, t.ended = true, true
		p.failed = append(p.failed, e.Test)
	}
}

// says takes in a line that a test printed with its place in the code: a failure, or something worth knowing.
func (t *test) says(text string) {
	t.own = true
	switch {
	case !t.late || strings.HasPrefix(text, story):
	case !t.told:
		t.told = true
	default:
		t.more = true
	}
}

// ofPackage takes an event of a package as a whole.
func (r *report) ofPackage(p *pkg, e event) {
	switch e.Action {
	case "output":
		p.wild = p.wild || wild.MatchString(e.Output)
		if !verdict.MatchString(e.Output) {
			p.lines = append(p.lines, line{"", e.Output})
		}
	case "pass", "skip":
		if e.Action == "pass" {
			fmt.Fprintf(r.out, "ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
		}
		delete(r.packages, e.Package)
	case "fail":
		p.tell(r.out)
		fmt.Fprintf(r.out, "FAIL\t%s\t%.1fs\n", e.Package, e.Elapsed)
		if again := p.repeatable(); r.mayRepeat && again != nil {
			for _, name := range again {
				r.late = append(r.late, e.Package+" "+name)
			}
		} else {
			r.failed = true
		}
		delete(r.packages, e.Package)
	}
}

// tell prints the output of the tests that failed, and at the end once more the lines that say why.
func (p *pkg) tell(out io.Writer) {
	told := func(l line) bool {
		t := p.tests[l.test]
		return l.test == "" || p.wild || len(p.failed) == 0 || t.failed || p.tests[outermost(l.test)].failed
	}
	for _, l := range p.lines {
		if told(l) {
			fmt.Fprint(out, l.text)
		}
	}
	for _, l := range p.lines {
		if t := p.tests[l.test]; t != nil && t.failed && why.MatchString(l.text) {
			fmt.Fprintf(out, "%s: %.500s\n", l.test, strings.TrimSuffix(l.text, "\n"))
		}
	}
}

// repeatable returns the outermost tests to be run once more, or nil when something of this package failed by more than a bound on
// time: then that is what has to be looked at.
func (p *pkg) repeatable() (names []string) {
	if p.wild {
		return nil
	}
	parents := map[string]bool{}
	for _, name := range p.failed {
		if at := strings.LastIndex(name, "/"); at >= 0 {
			parents[name[:at]] = true
		}
	}
	for _, t := range p.tests {
		if !t.ended { // the binary has ended in the middle of it
			return nil
		}
	}
	for _, name := range p.failed {
		t := p.tests[name]
		if t.broken || t.more || !t.late && (!parents[name] || t.own) {
			return nil
		}
		if !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return names
}

func outermost(test string) string {
	name, _, _ := strings.Cut(test, "/")
	return name
}

// write keeps what the next steps of the runner go by.
func (r *report) write(totals, again string) error {
	lost := r.lost
	if len(r.late) > 0 && !r.failed {
		lost = 0 // it is not known yet
	}
	if totals != "" {
		if err := add(totals, fmt.Sprintf("%d %d %d\n", r.passed, r.skipped, lost)); err != nil {
			return err
		}
	}
	if again == "" || len(r.late) == 0 {
		return nil
	}
	return add(again, strings.Join(r.late, "\n")+"\n")
}

func add(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
