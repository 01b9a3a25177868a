package election

import (
	"context"
	"slices"
	"testing"
)

// Which nodes have a copy outlasts their sessions, and the sessions of all of them. Only who deletes the znode shrinks the list.
func TestNodesWithACopyStayKnown(t *testing.T) {
	inWorld(t, func(w *world) {
		sees := func(node string, want ...string) {
			w.within(node, func(ctx context.Context, s *Session) error {
				c := stand(ctx, s, Race)
				if got := w.seesCopies(ctx, c).Known; !slices.Equal(got, want) {
					w.Errorf("%s knows %q, not %q", node, got, want)
				}
				return nil
			})
		}
		sees("b", "b")
		sees("a", "a", "b") // while b is gone
		sees("a", "a", "b")
		sees("c", "a", "b", "c")
		w.within("a", func(ctx context.Context, s *Session) error {
			return s.delete(ctx, Paths{s.cfg.Root, "svc"}.Known()+"/b")
		})
		sees("a", "a", "c")
		sees("b", "a", "b", "c") // it is back
	})
}
