package kit

import (
	"fmt"
	"slices"
	"time"
)

// Median of some durations; zero of none.
func Median(all []time.Duration) time.Duration { return Quantile(all, 0.5) }

// Quantile q (0 to 1) of some durations; zero of none.
func Quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// Summary tells the median and the extremes of some durations.
func Summary(all []time.Duration) string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	return fmt.Sprintf("median %v (quartiles %v and %v, %v to %v, n %d)",
		round(Median(all)), round(Quantile(all, 0.25)), round(Quantile(all, 0.75)), round(Quantile(all, 0)), round(Quantile(all, 1)), len(all))
}
