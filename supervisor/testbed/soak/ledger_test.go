package soak

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

// ledger is the account of one service's children. Of those that are dead it keeps a line, and removes the files: a look
// must not take longer with every failover.
type ledger struct {
	*kit.Accounts
	name string
	past []kit.Run
}

// tidy puts runs of which no process lives any more aside.
func (l *ledger) tidy(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(l.File("*.tick"))
	must.OK(t, err)
	alive, of := map[string]bool{}, map[string][]string{}
	for _, file := range files {
		id, err := tick.ParseName(file)
		must.OK(t, err)
		of[id.Run] = append(of[id.Run], file)
		alive[id.Run] = alive[id.Run] || kit.Alive(id.Pid)
	}
	for _, run := range l.Runs() {
		if alive[run.ID] || len(of[run.ID]) == 0 {
			continue
		}
		l.past = append(l.past, run)
		for _, file := range of[run.ID] {
			must.OK(t, os.Remove(file))
		}
	}
}

// all is every run there was, in the order of the starts.
func (l *ledger) all() []kit.Run {
	runs := map[string]kit.Run{}
	for _, r := range append(slices.Clone(l.past), l.Runs()...) {
		if was, ok := runs[r.ID]; ok { // a daemon of it was seen after it had been put aside
			r.First, r.Last = min(r.First, was.First), max(r.Last, was.Last)
		}
		runs[r.ID] = r
	}
	var all []kit.Run
	for _, r := range runs {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b kit.Run) int { return int(a.First - b.First) })
	return all
}

// newest is the run that began last, when its main process lives.
func (l *ledger) newest() (kit.Run, bool) {
	runs := l.Runs()
	if len(runs) == 0 {
		return kit.Run{}, false
	}
	r := runs[len(runs)-1]
	return r, r.Pid > 0 && kit.Alive(r.Pid)
}

const patience = kit.Soon

// running waits for a run.
func (l *ledger) running(t *testing.T, what string, ok func(kit.Run) bool) kit.Run {
	t.Helper()
	var found kit.Run
	kit.Until(t, patience, l.name+": "+what, func() bool {
		r, alive := l.newest()
		found = r
		return alive && ok(r)
	})
	return found
}
