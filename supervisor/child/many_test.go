package child

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// A supervisor of very many services has all their trees made, and ended, at once. A guardian that answers too late is replaced, as on a
// machine that stands still, but not each time.
func TestAThousandTreesAtOnceDoNotChokeTheGuardians(t *testing.T) {
	for range 4 {
		if unchoked(t, guarded(t, "walk")) {
			return
		}
	}
	t.Error("guardians are replaced")
}

// unchoked reports whether both guardians keep up.
func unchoked(t *testing.T, g *Guard) bool {
	t.Helper()
	must.OK(t, errors.Join(g.Begin(1, nil), g.Extend(1, wire.Now()+time.Minute)))
	pid := g.Pid()
	const n = 1000
	trees := make([]*Tree, n)
	all := func(f func(i int) error) {
		t.Helper()
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { errs[i] = f(i) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(strings.SplitN(err.Error(), "\n", 2)[0])
		}
	}
	for range 3 {
		all(func(i int) (err error) {
			trees[i], err = g.NewTree(t.Context(), 1, fmt.Sprint("svc", i), make([]byte, 300))
			if open := questions(g); open > cap(g.guardians.window) {
				t.Errorf("%d questions are open at once", open)
			}
			return err
		})
		all(func(i int) error { return trees[i].End(t.Context()) })
	}
	select {
	case <-g.Over(1):
		t.Errorf("the lease was ended: %v", g.Cause(1))
	default:
	}
	return g.Pid() == pid
}

// questions is how many wait for an answer.
func questions(g *Guard) int {
	g.guardians.mu.Lock()
	defer g.guardians.mu.Unlock()
	return g.guardians.pair.Questions.Open()
}
