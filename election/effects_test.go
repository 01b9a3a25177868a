package election

import (
	"context"
	"slices"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// Whatever stands there, in however broken a breadcrumb, says that something is left.
func TestEveryWordOfAnEffectCounts(t *testing.T) {
	for _, data := range []string{
		`{"node":"a","host":"a","lease_ms":1,"since":"2026-01-01T00:00:00Z","survives_boot":true}`, `{"node":"a/b","survives_boot":["role"]}`,
		`{"node":"a","host":"a","lease_ms":1,"since":"2026-01-01T00:00:00Z","effects_left":["vip"]}`,
		`{"node":"a","host":"a","lease_ms":1,"since":"2026-01-01T00:00:00Z","effects_left":true}`,
		`{"node":"a","host":"a","lease_ms":1,"since":"2026-01-01T00:00:00Z","effects_left":[]}`,
		`{"node":"a","host":"a","lease_ms":1,"since":"2026-01-01T00:00:00Z","effects_left":null}`,
		`{"node":"a/b","effects_left":["vip"]}`, `{"node":"a","undo_timeout_ms":-1,"effects_left":{}}`,
	} {
		if b, _ := ReadBreadCrumb([]byte(data)); len(b.Left)+len(b.Survive) == 0 || !b.Awaits() {
			t.Errorf("%s: %+v", data, b)
		}
	}
}

// P2: a guardian that closes a session undoes nothing: the breadcrumb stays, and says what is left. The lock goes with the session alone.
func TestWhoClosesASessionLeavesTheBreadcrumbOfEffects(t *testing.T) {
	for _, all := range []bool{true, false} {
		inWorld(t, func(w *world) {
			left, of := w.leave("a")
			paths := Paths{"/understudy", "svc"}
			w.asOperator(func(ctx context.Context, s *Session) error {
				crumb := &Crumb{s, paths}
				named, _, err := crumb.Named(ctx)
				if there, listed := crumb.ListEffects(ctx, named.Tree, Effects{Names: []string{"vip", "fs"}, UndoMs: 7}); !there || listed != nil {
					w.Errorf("listed: %v, %v", there, listed)
				}
				return err
			})
			must.Report(w, left.Close(w.Context(), w.dial, []Release{of}, endedAt(time.Now()), all))
			w.asOperator(func(ctx context.Context, s *Session) error {
				b, there, err := (&Crumb{s, paths}).Named(ctx)
				if err != nil || !there || !slices.Equal(b.Left, []string{"vip", "fs"}) || b.Undoing() != 7*time.Millisecond || b.Node != "a" {
					w.Errorf("left: %v, %v, %+v", err, there, b)
				}
				lock, err := s.existsW(ctx, paths.Lock())
				if err != nil || lock.exists == all {
					w.Errorf("closed: %v, and the lock is there: %v, %v", all, lock.exists, err)
				}
				return err
			})
		})
	}
}
