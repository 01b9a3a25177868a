package unit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"understudy/supervisor/wait"
)

// A program that has moved itself to another cgroup is killed there, but nobody finds processes that it forks there. The log and the
// status say so.

const (
	strayFirst    = time.Second // it mostly happens at the start, when a program opens a session or a scope
	strayLast     = time.Minute
	strayAtTheEnd = 100 * time.Millisecond
	strayAtOnce   = 5 * time.Millisecond // before the programs are asked to end: one that has ended is in no cgroup
)

// findStrays looks repeatedly, at growing intervals, in which cgroups the programs are.
func (w *watch) findStrays(ctx context.Context) {
	for next := strayFirst; wait.For(ctx, next); next = min(2*next, strayLast) {
		w.findStraysNow(ctx)
	}
}

// findLastStrays looks a last time. The stop does not wait for it if the kernel is busy.
func (w *watch) findLastStrays(ctx context.Context) {
	looked := make(chan struct{})
	w.r.hearers.Go(func() {
		defer close(looked)
		looking, enough := context.WithTimeout(ctx, strayAtTheEnd)
		defer enough()
		w.findStraysNow(looking)
	})
	atOnce := time.NewTimer(strayAtOnce)
	defer atOnce.Stop()
	select {
	case <-looked:
	case <-atOnce.C:
	}
}

// findStraysNow looks once, until ctx ends at the longest: the kernel may be busy with its cgroups.
func (w *watch) findStraysNow(ctx context.Context) {
	var all []string
	for _, p := range w.r.started() {
		at, err := wait.Reached(ctx, &w.r.u.reach, func() (string, error) { return p.process.Astray(), nil }, nil)
		if err != nil {
			return // the next look shows it
		}
		if at != "" {
			all = append(all, fmt.Sprintf("pid %d (%s) has moved itself to another cgroup, %s: processes that it forks there would not be killed", p.process.Pid(), p.Name, at))
		}
	}
	if said := strings.Join(all, "; "); w.news(&w.astray, said) {
		w.r.cfg.Astray(said)
	}
}
