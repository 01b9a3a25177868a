package soak

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"understudy/supervisor/testbed/kit"
)

const keepHistory = 100 // activations of a service

// grew lists what there is more of than before.
func grew(before, after figures) []string {
	var all []string
	for what, n := range after {
		was := before[what]
		switch {
		case strings.HasPrefix(what, "history"):
			if n > keepHistory {
				all = append(all, fmt.Sprintf("%s: %d entries", what, n))
			}
		case n > was:
			all = append(all, fmt.Sprintf("%s: %d, and %d before", what, n, was))
		}
	}
	return slices.Sorted(slices.Values(all))
}

// slope is the medians of the first and of the last fifth of some samples, and whether that is a growth.
func slope(all []int64) (first, last int64, grows bool) {
	fifth := max(1, len(all)/5)
	first, last = median(all[:fifth]), median(all[len(all)-fifth:])
	return first, last, last > first+256<<10+first/10
}

func median(all []int64) int64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// faults lists everything that is no longer as it was.
func (c *census) faults(before, after figures) []string {
	all := grew(before, after)
	for _, what := range slices.Sorted(maps.Keys(c.samples)) {
		if first, last, grows := slope(c.samples[what]); grows {
			all = append(all, fmt.Sprintf("%s: %d KiB, and %d KiB in the beginning", what, last>>10, first>>10))
		}
	}
	return all
}

// report prints what was done, and every figure.
func (c *census) report(before, after figures, failovers int, took time.Duration) {
	fmt.Printf("%d failovers in %v (%.1f per second, %d of all %d to another node), seed %d\n\n",
		failovers, took.Round(time.Second), float64(failovers)/took.Seconds(), c.moved, c.done, *seed)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "fault\tfailovers\tmedian outage\tlongest")
	kinds := slices.Collect(maps.Keys(c.kinds))
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Compare(len(c.kinds[b]), len(c.kinds[a])) })
	for _, k := range kinds {
		all := c.kinds[k]
		fmt.Fprintf(out, "%s\t%d\t%v\t%v\n", k, len(all), kit.Median(all).Round(time.Millisecond/10), kit.Quantile(all, 1).Round(time.Millisecond/10))
	}
	fmt.Fprintln(out, "\nwhat\tafter the warm-up\tat the end\t")
	for _, what := range slices.Sorted(maps.Keys(after)) {
		fmt.Fprintf(out, "%s\t%d\t%d\t\n", what, before[what], after[what])
	}
	fmt.Fprintln(out, "\nKiB, medians of each fifth of the run\t1\t2\t3\t4\t5")
	for _, what := range slices.Sorted(maps.Keys(c.samples)) {
		fmt.Fprint(out, what)
		for all, fifth := c.samples[what], max(1, len(c.samples[what])/5); len(all) >= fifth; all = all[fifth:] {
			fmt.Fprintf(out, "\t%d", median(all[:fifth])>>10)
		}
		fmt.Fprintln(out)
	}
	out.Flush()
}
