package child

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/testbed/must"
)

// P4: a guardian that does not know of a tree is none. Where no new one can know, it ends.
func TestAGuardianThatCannotKnowATreeIsNotSeated(t *testing.T) {
	g := guarded(t, box.KindCgroup)
	tree := planted(t, g)
	g.guardians.mu.Lock()
	path := tree.cgroup.Path
	tree.cgroup.Path = filepath.Join(t.TempDir(), "hidden")
	kill9(g.guardians.at[0].pid)
	g.guardians.mu.Unlock()
	select {
	case <-g.Over(1):
	case <-time.After(patience):
		t.Error("one of the guardians does not know of the tree, and it goes on")
	}
	if err := g.Cause(1); err != nil && !errors.Is(err, ErrGuardiansLost) {
		t.Error(err)
	}
	g.guardians.mu.Lock()
	tree.cgroup.Path = path
	g.guardians.mu.Unlock()
	must.Report(t, tree.End(t.Context()))
}
