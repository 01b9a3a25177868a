// Package soak wears supervisors out: failover after failover, of every kind, on real servers and with real children, and
// then a look at all that may have been left behind, in the processes and around them.
package soak

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/apart"
	"understudy/supervisor/testbed/kit"
)

var (
	failovers = flag.Int("failovers", 60, "how many, after the warm-up")
	seed      = flag.Uint64("seed", 1, "of what is drawn: the kinds of faults, and how long a term lasts")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := apart.Run(m)
	program.Close()
	kit.RemoveBinaries()
	os.Exit(code)
}

var program kit.Program // owns what the tests share

const warmUp = 50

func TestNothingIsLeaked(t *testing.T) {
	s := newSoak(t, nil)
	s.failOver(warmUp)
	before := s.measure()
	began, first := time.Now(), s.done
	const samples = 40
	for i := range samples {
		s.failOver(first + *failovers*(i+1)/samples)
		s.census.sample()
	}
	took := time.Since(began)
	after := s.measureUntil(before)
	s.census.report(before, after, s.done-first, took)
	for _, fault := range s.census.faults(before, after) {
		t.Error(fault)
	}
	s.checkRuns()
	for name, v := range s.nodes {
		if t.Failed() {
			t.Logf("goroutines of %s:\n%s", name, s.census.probe(v.Pid).Stacks)
		}
	}
}

// What finds nothing must be able to find something: here a supervisor leaks one of everything with each term.
func TestEveryLeakIsNoticed(t *testing.T) {
	s := newSoak(t, leaks)
	s.failOver(6)
	before := s.measure()
	for first := s.done; s.done < first+30; {
		s.failOver(s.done + 1)
		s.census.sample()
	}
	after := s.measure()
	found := s.census.faults(before, after)
	for _, what := range []string{
		"a: goroutines:", "b: goroutines:", "a: files: file:", "a: files of the guardians:", "processes:", "cgroups:", "znodes:",
		"temporary files:", "a: heap:", "b: heap:",
	} {
		if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, what) }) {
			t.Errorf("a leak is not noticed: %q is not in %q", what, found)
		}
	}
	if stacks := s.census.probe(s.nodes["a"].Pid).Stacks; !strings.Contains(stacks, "service.leak") {
		t.Errorf("who leaks goroutines is not told: %s", stacks)
	}
	s.checkRuns()
}
