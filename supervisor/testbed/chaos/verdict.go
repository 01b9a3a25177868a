package main

import (
	"fmt"
	"time"

	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
)

// verdict prints the table of faults, the totals, and every violation. It tells whether there was none.
func verdict(h *history.History, wrong []history.Violation, again string) bool {
	fmt.Printf("\n%-38s %5s %5s %9s %8s %8s\n", "fault", "times", "gaps", "median", "p95", "longest")
	for _, r := range h.Table() {
		fmt.Printf("%-38s %5d %5d %s\n", r.Kind, r.Count, len(r.Gaps), gaps(r.Gaps))
	}
	t := h.Totals()
	fmt.Printf("\n%d faults in %d bursts; %d runs of programs in %d activations\n", t.Faults, t.Bursts, t.Runs, t.Activations)
	if h.Counts.Wedged > 0 {
		fmt.Printf("ZooKeeper had a leader and took no writes, and was restarted: %d times\n", h.Counts.Wedged)
	}
	for _, t := range h.Counts.Torn {
		fmt.Printf("ZooKeeper's servers disagreed, and took their data from the leader: %s\n", t)
	}
	fmt.Printf("longest wait while somebody could have run: %s (%s; allowed: %s)\n", seconds(t.Wait), t.WaitFor, seconds(h.Setup.Bounds.Progress))
	fmt.Printf("writes acknowledged and kept: %d; refused for an old token: %d\n", t.Taken, t.Refused)
	fmt.Printf("sessions ended from outside: %d\n", h.Counts.SessionsEnded)
	found := map[string]int{}
	for _, v := range wrong {
		found[v.What]++
	}
	fmt.Printf("strangers turned away: %d times; what else they did in sieges: %d times\n", h.Counts.Strangers, h.Counts.Besieged)
	fmt.Printf("overlap %d  token %d  orphan %d  stuck %d  lost write %d  promoted %d  stranger let in %d  member not %d  other %d\n",
		found["overlap"], found["token"], found["orphan"], found["stuck"], found["lost write"], found["promoted"],
		found["stranger"], found["turned away"], found["end"])
	fmt.Printf("(overlaps show in signs of life, every %v, and in a lock that the kernel keeps\n", h.Setup.Bounds.Tick)
	fmt.Println(" for as long as any process of a run exists: that one has no blind spot)")
	const most = 20
	for i, v := range wrong {
		if i == most {
			fmt.Printf("... and %d more\n", len(wrong)-most)
			break
		}
		fmt.Printf("VIOLATED at %.3f s: %s %s: %s\n", h.Since(v.At), v.What, v.Service, v.Text)
	}
	const told = 14
	if len(wrong) > 0 {
		for _, line := range h.Story(wrong[0], told) {
			fmt.Println(line)
		}
	}
	if again != "" {
		fmt.Printf("seed %d; again: %s\n", h.Setup.Seed, again)
	}
	return len(wrong) == 0
}

func gaps(all []time.Duration) string {
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%9s %8s %8s", seconds(kit.Median(all)), seconds(kit.Quantile(all, 0.95)), seconds(kit.Quantile(all, 1)))
}

func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
