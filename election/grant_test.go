package election

import (
	"context"
	"testing"
)

// toldTimeout is what nodes/<node> says of the session's timeout, in milliseconds.
func toldTimeout(ctx context.Context, s *Session, node string) (int64, error) {
	v, err := s.read(ctx, NodesDir("/understudy")+"/"+node)
	if err != nil {
		return 0, err
	}
	n, err := decode[Node](v.data)
	return n.SessionMs, err
}

func TestANodeTellsTheTimeoutThatItWasGranted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			told, err := toldTimeout(ctx, s, "a")
			if want := testTimeout.Milliseconds(); told != want {
				w.Errorf("nodes/a tells %d ms, not %d", told, want)
			}
			return err
		})
	})
}
