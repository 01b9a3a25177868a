package demo

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// now is CLOCK_MONOTONIC, which all processes of a machine share.
func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(ts.Nano())
}

// life is one run of the program: first and last sign of it.
type life struct {
	node        string
	token       int64
	first, last time.Duration
}

// handover is what lay between a life and the ones before it.
type handover struct {
	from, to     life
	gap, overlap time.Duration
}

// handovers goes through all lives in the order of their starts.
func handovers(lives []life) []handover {
	slices.SortFunc(lives, func(a, b life) int { return cmp.Compare(a.first, b.first) })
	var all []handover
	for i := 1; i < len(lives); i++ {
		h := handover{from: lives[i-1], to: lives[i]}
		for _, previous := range lives[:i] {
			if previous.last > h.from.last {
				h.from = previous
			}
			if previous.last >= h.to.first {
				h.overlap = max(h.overlap, min(previous.last, h.to.last)-h.to.first, time.Nanosecond)
			}
		}
		h.gap = max(h.to.first-h.from.last, 0)
		all = append(all, h)
	}
	return all
}

// newest is the life that began last; nothing before the first.
func newest(lives []life) (life, bool) {
	if len(lives) == 0 {
		return life{}, false
	}
	return slices.MaxFunc(lives, func(a, b life) int { return cmp.Compare(a.first, b.first) }), true
}
