package child

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/child/wire"
)

// A node that could not start a service, for want of open files, does not stand for it, and what runs keeps what it needs.
func TestNoTreeIsMadeWithoutRoomForItsProgram(t *testing.T) {
	if !innerHalf(t, "sh", "-c", `ulimit -n 120 && exec "$0" "$@"`) {
		return
	}
	kindsInTurn(t, func(t *testing.T, kind string) {
		g := guarded(t, kind)
		if err := errors.Join(g.Begin(1, nil), g.Extend(1, wire.Now()+time.Minute)); err != nil {
			t.Fatal(err)
		}
		var trees []*Tree
		for i := range 5 {
			tree, err := g.NewTree(t.Context(), 1, fmt.Sprint("svc", i), nil)
			switch {
			case i < 4 && err == nil:
				trees = append(trees, tree)
			case i < 4:
				t.Fatal(err)
			case err == nil || !strings.Contains(err.Error(), "open files, 120, suffices for 4 services: raise it"):
				t.Errorf("the fifth: %v", err)
			}
		}
		for _, tree := range trees {
			if _, err := tree.Start(t.Context(), Spec{Argv: []string{"sleep", "1000"}}); err != nil {
				t.Fatalf("there was room for it: %v", err)
			}
		}
		if err := trees[0].End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := g.NewTree(t.Context(), 1, "svc4", nil); err != nil {
			t.Errorf("there is room again: %v", err)
		}
	})
}
