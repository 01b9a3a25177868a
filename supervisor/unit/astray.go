package unit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/wait"
)

// A process that gets into another cgroup is held by itself once a look has found it. One whose parent ends before that is not found. The
// log and the status say so, and with contain=strict the run ends.

// ErrAstray says that a program cannot be held as its config demands.
var ErrAstray = errors.New("contain=strict allows no process outside of the container")

const (
	strayFirst    = time.Second // it mostly happens at the start, when a program opens a session or a scope
	strayLast     = time.Minute // while there are none
	strayAtTheEnd = 100 * time.Millisecond
	strayAtOnce   = 5 * time.Millisecond // before the programs are asked to end: the children of one that has ended are nobody's
	straysSaid    = 3
)

// findStrays looks repeatedly, at growing intervals, for processes in other cgroups, also while the programs are being stopped.
func (w *watch) findStrays(ctx context.Context) {
	for next := strayFirst; wait.For(ctx, next); next = min(2*next, strayLast) {
		if w.findStraysNow(ctx) {
			next = strayFirst / 2 // what they leave behind is found only while they live
		}
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

// findStraysNow looks once, until ctx ends at the longest, since the kernel may be busy with its cgroups, and reports whether there are
// any.
func (w *watch) findStraysNow(ctx context.Context) bool {
	found, err := wait.Reached(ctx, &w.r.u.reach, w.r.cfg.Tree.Strays, nil)
	if err != nil {
		w.r.u.log.Debug("the next look finds processes in other cgroups", "service", w.r.u.cfg.Service, "error", err)
		return false
	}
	said := sayStrays(found)
	ours := w.r.started()
	lost := slices.ContainsFunc(found, func(s child.Stray) bool {
		return !slices.ContainsFunc(ours, func(p part) bool { return p.process.Pid() == s.Pid })
	})
	w.telling.Lock() // the last look may come beside another one
	w.lost.Store(lost)
	if w.news(&w.astray, said) {
		w.r.cfg.Astray(said)
	}
	w.telling.Unlock()
	if said != "" && w.r.cfg.Conf.Contain == config.ContainStrict {
		w.r.end(fmt.Errorf("%w: %s", ErrAstray, said))
	}
	return said != ""
}

// sayStrays names the first ones.
func sayStrays(found []child.Stray) string {
	var all []string
	for i, s := range found {
		if i == straysSaid {
			all = append(all, fmt.Sprintf("%d more", len(found)-i))
			break
		}
		all = append(all, fmt.Sprintf("pid %d (%s) is in another cgroup, %s", s.Pid, s.Comm, s.Cgroup))
	}
	if all == nil {
		return ""
	}
	return strings.Join(all, "; ") + ": it is killed there, but a process that it leaves behind may outlive the service"
}
