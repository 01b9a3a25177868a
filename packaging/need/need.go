// Package need lets a test say what it needs that not every machine has: root's rights, a real ZooKeeper, network namespaces, a
// browser. It runs when UNDERSTUDY_TESTS, a comma-separated list, names all of that, or is `all`; otherwise it is left out, and the
// package says so at its end. What is asked for and missing is a failure. packaging/test.sh asks for what the machine has.
package need

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const variable = "UNDERSTUDY_TESTS"

// Asked tells whether tests that need a thing are asked for.
func Asked(thing string) bool {
	return slices.ContainsFunc(strings.Split(os.Getenv(variable), ","), func(word string) bool { return word == thing || word == "all" })
}

var (
	mu      sync.Mutex // guards the fields below
	leftOut = map[string]int{}
)

// These skips the test unless all the things are asked for.
func These(tb testing.TB, things ...string) {
	tb.Helper()
	for _, thing := range things {
		if !Asked(thing) {
			mu.Lock()
			leftOut[thing]++
			mu.Unlock()
			tb.Skipf("left out: %s does not ask for %s", variable, thing)
		}
		if thing == "root" && os.Geteuid() != 0 {
			tb.Fatalf("%s asks for root: run the tests as root", variable)
		}
	}
}

// Main is a TestMain: it runs the package's tests, and says what was left out of them.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a TestMain with something to do afterwards.
func Run(m *testing.M) (code int) {
	code = m.Run()
	mu.Lock()
	defer mu.Unlock()
	var all []string
	for _, thing := range slices.Sorted(maps.Keys(leftOut)) {
		all = append(all, fmt.Sprintf("%s (%d)", thing, leftOut[thing]))
	}
	if len(all) > 0 {
		say("left out, tests that need: " + strings.Join(all, ", "))
	}
	return code
}

// AtOnce has so many parallel tests run at once, unless the command line says otherwise: of those that mostly wait more than there
// are processors.
func AtOnce(n int) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", strconv.Itoa(n))
	}
}

// None is a TestMain's way to leave a whole package out. `go test` then adds "[no tests to run]" to its line.
func None(thing string) {
	fmt.Println("testing: warning: no tests to run\nPASS")
	say("left out, all tests, which need: " + thing)
	os.Exit(0)
}

// say prints a line. `go test` with several packages, and without -v, keeps to itself what a package prints whose tests pass; the
// line goes to its stderr then, unless that is a file, in which each writes at a place of its own.
func say(line string) {
	fmt.Println(line)
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid()))
	if testing.Verbose() || err != nil || string(bytes.TrimSpace(comm)) != "go" {
		return
	}
	stderr, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/2", os.Getppid()), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer stderr.Close()
	if info, err := stderr.Stat(); err == nil && !info.Mode().IsRegular() {
		binary, _ := debug.ReadBuildInfo()
		fmt.Fprintf(stderr, "    \t%s\t%s\n", strings.TrimSuffix(binary.Path, ".test"), line)
	}
}

// All asks for everything, in a program that is no test.
func All() { _ = os.Setenv(variable, "all") }
