package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	sabotageFlag  = flag.String("sabotage", "", "break the code in each way whose name contains this; all: in every way")
	sabotagePart  = flag.String("sabotage-part", "1/1", "take of these only each so-manyth, beginning with the first, the second ...: 1/3, 2/3 and 3/3 are all")
	sabotageSeeds = flag.Uint64("sabotage-seeds", 400, "within how many seeds each sabotage has to be caught")
)

// capture is how a sabotage was noticed.
type capture struct {
	by    string // the promise that was broken; empty: it was not noticed
	seeds uint64 // the one that noticed, or how many did not
	took  time.Duration
	err   error
}

func (c capture) String() string {
	if c.by == "" {
		return fmt.Sprintf("not noticed in %d seeds, %v", c.seeds, c.took.Round(time.Second))
	}
	return fmt.Sprintf("%s, seed %d, %v", c.by, c.seeds, c.took.Round(time.Second))
}

// TestSabotageIsCaught applies each sabotage to a build of its own, and demands that the simulation notices it within so many
// seeds, from -seed on.
func TestSabotageIsCaught(t *testing.T) {
	if *sabotageFlag == "" {
		t.Skip("for -sabotage: make sabotage")
	}
	module, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	var part, of int
	if _, err := fmt.Sscanf(*sabotagePart, "%d/%d", &part, &of); err != nil || part < 1 || part > of {
		t.Fatalf("there is no part %s", *sabotagePart)
	}
	caught := make([]capture, len(sabotages))
	next := make(chan int)
	var wg sync.WaitGroup
	for range *workersFlag {
		wg.Go(func() {
			for n := range next {
				caught[n] = commit(t, module, sabotages[n])
				t.Logf("%s: %s", sabotages[n].what, caught[n])
			}
		})
	}
	for n, s := range sabotages {
		if n%of == part-1 && (*sabotageFlag == "all" || strings.Contains(s.what, *sabotageFlag)) {
			next <- n
		}
	}
	close(next)
	wg.Wait()
	fmt.Printf("%-60s %-12s %6s %8s\n", "sabotage (* of the simulation itself)", "caught by", "seeds", "time")
	for n, s := range sabotages {
		switch c := caught[n]; {
		case c.err != nil:
			t.Errorf("%s: %v", s.what, c.err)
		case c.seeds > 0 && c.by == "":
			t.Errorf("%q is not noticed within %d seeds", s.what, c.seeds)
			c.by = "NOTHING"
			fallthrough
		case c.seeds > 0:
			fmt.Printf("%-60s %-12s %6d %8v\n", s.what, c.by, c.seeds, c.took.Round(time.Second/10))
		}
	}
}

// known is the seed that noticed a sabotage last, or 0: it is tried first.
func known(what string) uint64 {
	text, err := os.ReadFile("testdata/sabotages.tsv")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "\t") // the seed, the promise, the sabotage
		if len(cells) == 3 && cells[2] == what {
			n, _ := strconv.ParseUint(cells[0], 10, 64)
			return n
		}
	}
	return 0
}

// commit applies a sabotage and looks for the first seed that notices.
func commit(t *testing.T, module string, s sabotage) (c capture) {
	began := time.Now()
	exe, err := overlaid(t.Context(), t.TempDir(), patch{root: module, changes: s.changes})
	if err != nil {
		return capture{err: err}
	}
	look := func(first, last uint64) error {
		return simulate(exe, first, 1, task{Last: last}, func(r *report) bool {
			c.seeds, c.by = r.Seed, r.Promise
			return c.by == ""
		})
	}
	if seed := known(s.what); seed > 0 {
		err = look(seed, seed)
	}
	if err == nil && c.by == "" {
		err = look(*seedFlag, *seedFlag+*sabotageSeeds-1)
	}
	if err != nil && strings.Contains(err.Error(), standsStill) {
		c.by, c.seeds, err = "it hangs", max(c.seeds+1, known(s.what)), nil
	}
	c.took, c.err = time.Since(began), err
	return c
}

// TestAFailureRepeatsAndShrinks breaks the code, and has seeds that notice run again, and shrink: in two new processes they come
// to the same to the letter, and break the promise that they broke in a process which had run other seeds before.
func TestAFailureRepeatsAndShrinks(t *testing.T) {
	if *sabotageFlag == "" {
		t.Skip("for -sabotage: make sabotage")
	}
	module, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dice, err := loadDice(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const what = "no fencing at all"
	n := slices.IndexFunc(sabotages, func(s sabotage) bool { return s.what == what })
	exe, err := overlaid(t.Context(), t.TempDir(), dice, patch{root: module, changes: sabotages[n].changes})
	if err != nil {
		t.Fatal(err)
	}
	// About one in eight takes another turn after others (8 of 60): that five of twelve do is no chance.
	const wanted, shrinking = 12, 3
	again, found := 0, failures(t, exe, wanted)
	for _, first := range found {
		one, other := runOne(t, exe, task{Seed: first.Seed}), runOne(t, exe, task{Seed: first.Seed})
		if one.Broken != other.Broken || one.Sum != other.Sum {
			fmt.Printf("seed %d is not the same twice: %s (%x), %s (%x)\n", first.Seed, one.Broken, one.Sum, other.Broken, other.Sum)
			continue
		}
		if one.Promise != first.Promise {
			fmt.Printf("seed %d took another turn after others: %s, and alone: %q\n", first.Seed, first.Broken, one.Broken)
			continue
		}
		if again++; again > shrinking {
			continue
		}
		shrunk := runOne(t, exe, task{Seed: first.Seed, Shrink: 60})
		fmt.Printf("seed %d, %s: %d episodes and faults, shrunk to %d\n", first.Seed, first.Broken, shrunk.Weight, shrunk.Shrunk)
		if shrunk.Shrunk == 0 || shrunk.Shrunk*2 > shrunk.Weight || shrunk.Plan == "" {
			t.Errorf("seed %d: shrunk from %d to %d episodes and faults only:\n%s", first.Seed, shrunk.Weight, shrunk.Shrunk, shrunk.Plan)
		}
	}
	fmt.Printf("of %d failures, %d came again to the letter\n", len(found), again)
	if len(found) < wanted || again*3 < wanted*2 {
		t.Errorf("of %d failures (%d are wanted), only %d came again", len(found), wanted, again)
	}
}

// failures is the first so many seeds that break a promise.
func failures(t *testing.T, exe string, wanted int) (found []*report) {
	t.Helper()
	err := simulate(exe, *seedFlag, *workersFlag, task{Last: *seedFlag + *sabotageSeeds}, func(r *report) bool {
		if r.Broken != "" && len(found) < wanted {
			found = append(found, r)
		}
		return len(found) < wanted
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func runOne(t *testing.T, exe string, ask task) (r *report) {
	t.Helper()
	w, err := startWorker(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer w.stop()
	if r, err = w.ask(ask); err != nil {
		t.Fatal(err)
	}
	return r
}
