// Command bench measures what Understudy costs and how quick it is, on real ZooKeeper servers, beside what ZooKeeper and
// the kernel need for the bare minimum in the same run.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"understudy/supervisor/testbed/apart"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/zktest"
)

func main() { os.Exit(apart.Do(run)) }

// bench is one run: the stage, and how often the quick things are repeated.
type bench struct {
	*kit.Program
	stage *kit.Stage
	times int
	plays int

	beside   string // another binary, whose switchovers alternate with those of this one
	timeline bool   // print what was logged in the last gap of each kind
}

func run() (code int) {
	times := flag.Int("n", 50, "how often the quick things are repeated")
	idle := flag.Duration("idle", 10*time.Second, "how long idleness is watched")
	faults := flag.Bool("faults", true, "measure the faults that take a lease too")
	only := flag.String("only", "", "measure only what contains this word")
	services := flag.Int("services", 100, "how many services a supervisor with many has")
	timeline := flag.Bool("timeline", false, "print what the supervisors logged in one gap of each kind")
	beside := flag.String("beside", "", "another understudy `binary`, of another revision: its switchovers are measured in turn with those of this one")
	flag.Parse()
	b := &bench{Program: &kit.Program{}, times: *times, beside: *beside, timeline: *timeline}
	defer kit.RemoveBinaries()
	defer b.Close()
	defer func() {
		if b.Failed() {
			_ = recover() // it was told already
			code = 1
		}
	}()
	began := time.Now()
	measured := false
	kit.UnderstudyBinary(b) // built before the first start is timed
	b.stage = kit.NewStage(b, 3, zktest.Config{})
	fmt.Println("three servers, tickTime 500 ms, data in memory; one machine")
	for _, part := range []struct {
		name    string
		measure func()
	}{
		{"cold start", b.coldStart},
		{"switchover", b.switchover},
		{"faults", func() {
			if *faults {
				b.faults()
			}
		}},
		{"idle", func() { b.idle(*idle) }},
		{"many", func() { b.many(*services, *idle) }},
		{"writes", func() { b.writes(*idle) }},
	} {
		if strings.Contains(part.name, *only) {
			b.scene(part.measure)
			measured = true
		}
	}
	if !measured {
		b.Fatalf("nothing is called %s", *only)
	}
	fmt.Printf("measured in %v\n", time.Since(began).Round(time.Second))
	return 0
}

// scene measures something, and ends what was started for it.
func (b *bench) scene(measure func()) {
	outer := b.Program
	b.Program = &kit.Program{}
	defer func() {
		b.Close()
		if b.Failed() {
			outer.Error("failed")
		}
		b.Program = outer
	}()
	measure()
}

// play is a service that nobody else has.
func (b *bench) play(o kit.Options, words ...string) *kit.Play {
	b.plays++
	return kit.NewPlay(b, b.stage, fmt.Sprint("bench", b.plays), o, words...)
}

// head begins a group of figures.
func head(text string) { fmt.Printf("\n%s\n", text) }

// figure prints what was measured many times.
func figure(what string, all []time.Duration) time.Duration {
	fmt.Printf("  %-58s %s\n", what, kit.Summary(all))
	return kit.Median(all)
}

// fact prints what was measured once.
func fact(what, format string, args ...any) {
	fmt.Printf("  %-58s %s\n", what, fmt.Sprintf(format, args...))
}
