// Command chaos runs services on three nodes with three real ZooKeeper servers, lets faults of every kind befall them, and
// judges what happened: no two runs of a program at once, tokens that grow, nothing that outlives its supervisor, no write
// lost that was acknowledged, nobody believed who lacks a key, and somebody who runs whenever somebody can.
//
//	go run ./supervisor/testbed/chaos -minutes 5 -seed 42
//
// The faults, their order and lengths follow from the seed; what they meet does not, for the clock is real.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/store"
)

// What this program is when it is started by itself.
const (
	modeStore = "serve-the-store"
	modeFence = "ask-the-power-switch"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	var err error
	switch {
	case len(args) == 3 && args[0] == modeStore:
		err = serveStore(args[1], args[2])
	case len(args) == 2 && args[0] == modeFence:
		err = askPower(args[1])
	default:
		return chaos(args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveStore(addr, journal string) error {
	f, err := os.Create(journal)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return store.New(f).Serve(l)
}

// options are what a run is told.
type options struct {
	minutes  float64
	seed     uint64
	only     string
	last     time.Duration
	dir      string
	sabotage string
	judge    string
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.Float64Var(&o.minutes, "minutes", 5, "how long faults go on")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64N(1e6), "what the faults follow from; by default another one each time")
	flags.StringVar(&o.only, "only", "", "only faults whose name contains one of these, divided by commas")
	flags.DurationVar(&o.last, "last", 0, "let every fault last as long as this")
	flags.StringVar(&o.dir, "dir", "", "where report and logs go; by default a temporary folder, kept only if something was wrong")
	flags.StringVar(&o.sabotage, "sabotage", "", "break Understudy in this way first: "+sabotageNames())
	flags.StringVar(&o.judge, "judge", "", "run nothing: judge a history.json that was kept, and write its report")
	err = flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("not understood: %q", flags.Args())
	}
	return o, err
}

func chaos(args []string) (code int) {
	o, err := parse(args)
	if err != nil {
		return 2
	}
	if o.judge != "" {
		return judgeKept(o.judge)
	}
	all := kinds(meansOf(o.seed))
	if o.only != "" {
		if all, err = only(o.only, all); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	program := &kit.Program{}
	defer kit.RemoveBinaries()
	defer program.Close()
	defer func() {
		if program.Failed() {
			_ = recover() // it was told already
			code = 1
		}
	}()
	p := newPlan(o.seed, all)
	p.last = o.last
	return perform(program, o, p)
}

// perform is one run, from the first server's start to the verdict.
func perform(program *kit.Program, o options, p *plan) int {
	w := newWorld(program, meansOf(o.seed))
	own := o.dir == ""
	if err := w.folders(o); err != nil {
		program.Fatal(err)
	}
	fmt.Printf("%g minutes of faults on 3 nodes, 3 servers and 5 services, from seed %d\n", o.minutes, o.seed)
	fmt.Printf("the nodes' agents know one another by %v\n", w.secrets.means)
	w.build()
	w.record.open(o.seed, p.kinds)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	err := w.recover(false)
	if err == nil {
		enough, stop := context.WithTimeout(ctx, time.Duration(o.minutes*float64(time.Minute)))
		err = w.torment(enough, p)
		stop()
	}
	if err != nil && !errors.Is(err, errViolated) {
		program.Error(err)
	}
	h, wrong := w.end()
	if err := errors.Join(w.ensemble.keepLogs(w.logs), w.keep(h, wrong)); err != nil {
		program.Error(err)
	}
	good := verdict(h, wrong, again(o)) && !program.Failed()
	if good && own {
		os.RemoveAll(w.dir)
		return 0
	}
	fmt.Printf("report and logs: %s\n", w.dir)
	if good {
		return 0
	}
	return 1
}

func again(o options) string {
	text := fmt.Sprintf("make chaos MINUTES=%g SEED=%d", o.minutes, o.seed)
	if o.only != "" || o.sabotage != "" || o.last != 0 {
		text = fmt.Sprintf("go run ./supervisor/testbed/chaos -minutes %g -seed %d", o.minutes, o.seed)
	}
	if o.only != "" {
		text += fmt.Sprintf(" -only %q", o.only)
	}
	if o.last != 0 {
		text += fmt.Sprintf(" -last %v", o.last)
	}
	if o.sabotage != "" {
		text += fmt.Sprintf(" -sabotage %q", o.sabotage)
	}
	return text
}
