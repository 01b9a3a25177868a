// Command compare has Understudy and its peers do the same on hosts of their own, strikes them with the same faults at the same time, and
// prints what their clients missed, what ran twice, and what was left behind. A peer whose programs are not on this machine is left out,
// and said so; the files of the parts have the Debian packages.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"understudy/supervisor/testbed/apart"
	"understudy/supervisor/testbed/kit"
)

func main() { os.Exit(apart.Do(run)) }

func run() (code int) {
	times := flag.Int("n", 0, "how often each peer is struck by each fault; 0: twice, addresses 3 times")
	only := flag.String("only", "", "compare only peers whose name contains this word")
	name := flag.String("part", "", "only this part: programs, addresses or replicated")
	fault := flag.String("fault", "", "only faults whose name contains this word")
	flag.Parse()
	began := time.Now()
	defer kit.RemoveBinaries()
	fmt.Println("Hosts are network namespaces of one machine, servers have hosts of their own, and each peer is set up as its manual shows it.")
	done := false
	for _, p := range []comparison{programs(), addresses(), replicated()} {
		if *name != "" && *name != p.title() {
			continue
		}
		done = true
		if !p.run(*times, *only, *fault) {
			code = 1
		}
	}
	if !done {
		fmt.Fprintf(os.Stderr, "there is no part %q\n", *name)
		return 2
	}
	fmt.Printf("\ncompared in %v\n", time.Since(began).Round(time.Second))
	return code
}
