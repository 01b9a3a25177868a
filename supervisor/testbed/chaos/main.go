// Command chaos runs five services on three nodes with three real ZooKeeper servers, lets faults befall them, and checks the
// promises: no two runs of a program at once, tokens that grow, nothing that outlives its supervisor, no client let in that lacks
// a key, no program touched by what must not touch it, and every service running again after the faults.
//
//	go run ./supervisor/testbed/chaos -minutes 5 -seed 42
//
// The faults, their order and their lengths follow from the seed. What they meet does not, because the clock is real.
//
// To add a fault, write its function beside its like (node.go, network.go, servers.go, orders.go, strangers.go) and give it a
// line in faults.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"understudy/supervisor/testbed/apart"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

func main() { os.Exit(apart.Do(func() int { return run(os.Args[1:]) })) }

// run returns the exit code: 0 without findings, 1 with some or where the run itself failed, 2 for a wrong command line.
func run(args []string) (code int) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	minutes := flags.Float64("minutes", 5, "how long faults go on")
	seed := flags.Uint64("seed", rand.Uint64N(1e6), "the seed of the schedule; by default another one each time")
	words := flags.String("only", "", "only faults whose name contains one of these words, divided by commas")
	last := flags.Duration("last", 0, "let every fault last as long as this")
	dir := flags.String("dir", "dist/chaos", "the folder of report.txt and the logs")
	if flags.Parse(args) != nil {
		return 2
	}
	kinds := only(*words, faults())
	if len(kinds) == 0 || flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "no fault has a name with %q in it, or not understood: %q\n", *words, flags.Args())
		return 2
	}
	program := &kit.Program{}
	defer kit.RemoveBinaries()
	defer program.Close()
	defer func() {
		if program.Failed() {
			_ = recover() // the failure is on stderr already
			code = 1
		}
	}()
	w, err := newWorld(program, *dir)
	must.OK(program, err)
	w.say("%g minutes of faults on 3 nodes, 3 servers and %d services: -minutes %g -seed %d -only %q -last %v", *minutes, len(w.services), *minutes, *seed, *words, *last)
	w.build()
	w.recover()
	ctx, stop := signal.NotifyContext(w.ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(*minutes*float64(time.Minute)))
	defer cancel()
	w.torment(ctx, newDealer(*seed, kinds, *last))
	w.end()
	w.table(kinds)
	return min(w.verdict(), 1)
}

// folder makes the folder of the report, with an empty one for logs inside.
func folder(dir string) (logs string, report *os.File, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, err
	}
	logs = filepath.Join(dir, "logs")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return "", nil, err
	}
	report, err = os.Create(filepath.Join(dir, "report.txt"))
	return logs, report, err
}
