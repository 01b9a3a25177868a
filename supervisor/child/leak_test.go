package child

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// footprint counts what a process could leak.
func footprint(t *testing.T, g *Guard) (fds, guardianFDs, cgroups, goroutines int) {
	t.Helper()
	count := func(dir string) int {
		entries, err := os.ReadDir(dir)
		must.OK(t, err)
		return len(entries)
	}
	if g.cfg.Container.Kind == box.KindCgroup {
		entries, err := os.ReadDir(g.cfg.Container.Base)
		must.OK(t, err)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "test.leaks.") {
				cgroups++
			}
		}
	}
	for _, pid := range guardiansOf(os.Getpid()) {
		guardianFDs += count("/proc/" + itoa(pid) + "/fd")
	}
	return count("/proc/self/fd"), guardianFDs, cgroups, runtime.NumGoroutine()
}

func TestNothingIsLeaked(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		g := guarded(t, kind)
		one := func(number uint64) {
			must.OK(t, errors.Join(g.Begin(number, nil), g.Extend(number, wire.Now()+time.Minute)))
			tree, err := g.NewTree(t.Context(), number, "leaks", nil)
			must.OK(t, err)
			p, err := tree.Start(t.Context(), Spec{Argv: []string{"sleep", "1000"}})
			must.OK(t, err)
			must.OK(t, tree.End(t.Context()))
			if _, err := p.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			must.OK(t, g.Finish(number))
			if err := caughtUp(t.Context(), g); err != nil { // the guardians have done all before it
				t.Fatal(err)
			}
		}
		one(1)
		fds, guardianFDs, _, goroutines := footprint(t, g)
		for i := range 30 { // ten times what a footprint may differ by
			one(uint64(i + 2))
		}
		fds2, guardianFDs2, cgroups, goroutines2 := footprint(t, g)
		for end := time.Now().Add(patience); time.Now().Before(end) && (fds2 > fds+3 || goroutines2 > goroutines+3); wire.PollOne(-1, 0, time.Millisecond) {
			fds2, guardianFDs2, cgroups, goroutines2 = footprint(t, g) // who reaped the last ones is just about to go
		}
		if fds2 > fds+3 || guardianFDs2 > guardianFDs+2 || cgroups > 0 || goroutines2 > goroutines+3 {
			t.Errorf("descriptors %d -> %d, of the guardians %d -> %d, cgroups %d, goroutines %d -> %d",
				fds, fds2, guardianFDs, guardianFDs2, cgroups, goroutines, goroutines2)
		}
		g.guardians.mu.Lock()
		defer g.guardians.mu.Unlock()
		if left := g.guardians.pair.State.Leases(); len(left) > 0 {
			t.Errorf("left: %d epochs", len(left))
		}
	})
}
