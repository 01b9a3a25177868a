package child

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

// A node that could not start a service, for want of open files, does not stand for it, and what runs keeps what it needs.
func TestNoTreeIsMadeWithoutRoomForItsProgram(t *testing.T) {
	if !innerHalf(t, "sh", "-c", `ulimit -n 120 && exec "$0" "$@"`) {
		return
	}
	kindsInTurn(t, func(t *testing.T, kind string) {
		g := guarded(t, kind)
		must.OK(t, errors.Join(g.Begin(1, nil), g.Extend(1, wire.Now()+time.Minute)))
		var trees []*Tree
		made := func(i int) (tree *Tree) {
			tree, err := g.NewTree(t.Context(), 1, fmt.Sprint("svc", i), nil)
			if err != nil && !strings.Contains(err.Error(), "open files, 120, suffices for 4 services: raise it") {
				t.Error(err)
			}
			return tree
		}
		const atOnce = 8 // as a supervisor does that starts: some may be refused for others that are refused as well
		all := make(chan *Tree)
		for i := range atOnce {
			go func() { all <- made(i) }()
		}
		for range atOnce {
			if tree := <-all; tree != nil {
				trees = append(trees, tree)
			}
		}
		if len(trees) > 4 {
			t.Fatalf("%d trees were made", len(trees))
		}
		for i := atOnce; len(trees) < 4; i++ {
			tree := made(i)
			if tree == nil {
				t.Fatalf("no more than %d trees are made", len(trees))
			}
			trees = append(trees, tree)
		}
		if made(100) != nil {
			t.Error("a fifth tree is made")
		}
		for _, tree := range trees {
			if _, err := tree.Start(t.Context(), Spec{Argv: []string{"sleep", "1000"}}); err != nil {
				t.Fatalf("there was room for it: %v", err)
			}
		}
		must.OK(t, trees[0].End(t.Context()))
		if _, err := g.NewTree(t.Context(), 1, "another", nil); err != nil {
			t.Errorf("there is room again: %v", err)
		}
	})
}
