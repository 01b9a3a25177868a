//go:build simulation

package sim

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

var (
	seedFlag    = flag.Uint64("seed", 1, "the first seed")
	hoursFlag   = flag.Float64("hours", 0, "virtual hours to simulate; 0: as many as fit in -wall")
	wallFlag    = flag.Duration("wall", time.Minute, "how long to simulate when no hours are asked for")
	workersFlag = flag.Int("workers", runtime.NumCPU(), "processes that simulate")
	exactFlag   = flag.Bool("exact", true, "build the simulation with a runtime that makes runs repeat")
	replayFlag  = flag.Bool("replay", false, "tell everything that happens in the run of -seed")
	shrinkFlag  = flag.Int("shrink", 150, "how many runs to spend on shrinking a schedule")
)

// TestThePromisesHoldInSimulatedTime runs one seed after the other. A seed that fails is printed with its shrunk schedule;
// -replay -seed with its number tells all of it.
func TestThePromisesHoldInSimulatedTime(t *testing.T) {
	wall := *wallFlag
	if testing.Short() {
		wall = min(wall, 10*time.Second)
	}
	sum := newSummary()
	began := time.Now()
	err := simulate(repeatable(t), *seedFlag, *workersFlag, task{Shrink: *shrinkFlag}, func(r *report) bool {
		sum.add(r)
		if r.Broken != "" {
			t.Errorf("seed %d: %s\n%s\n%s", r.Seed, r.Broken, r.Plan, tail(r.Trace, 100))
			return false
		}
		if *hoursFlag > 0 {
			return sum.virtual.Hours() < *hoursFlag
		}
		return time.Since(began) < wall
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(sum.String(time.Since(began)))
}

// TestReplay tells everything that happens in the run of -seed.
func TestReplay(t *testing.T) {
	if !*replayFlag {
		t.Skip("for -replay")
	}
	err := simulate(repeatable(t), *seedFlag, 1, task{Tell: true}, func(r *report) bool {
		fmt.Println(r.Trace)
		if r.Broken != "" {
			t.Error(r.Broken)
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestASeedGivesTheSameTraceAgain measures how exactly a run can be repeated: Go's select, map order and global random
// numbers are not in our hand.
func TestASeedGivesTheSameTraceAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("a measurement")
	}
	first := map[uint64]uint64{}
	same, outcome, all := 0, 0, 0
	const seeds = 24
	broken := map[uint64]string{}
	exe := repeatable(t)
	for round := range 2 {
		err := simulate(exe, 1, *workersFlag, task{}, func(r *report) bool {
			if r.Seed > seeds {
				return false
			}
			if round == 0 {
				first[r.Seed], broken[r.Seed] = r.Sum, r.Broken
				return true
			}
			all++
			if first[r.Seed] == r.Sum {
				same++
			}
			if broken[r.Seed] == r.Broken {
				outcome++
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("of %d seeds, %d gave the same trace to the letter, %d the same outcome\n", all, same, outcome)
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
