package election

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"
)

// P5: who waits by time learns that an effect is left, and overwrites no breadcrumb that says so. Only its own node removes it.
func TestWhoWaitsLearnsThatAnEffectIsLeft(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			mine, err := activate(ctx, s)
			if err != nil {
				return err
			}
			w.byHand(Paths{"/understudy", "svc"}.Lock())
			w.claims("b", func(ctx context.Context, s2 *Session, waits *Claim) error {
				late := *waits // it does not look
				confirmed := make(chan error, 1)
				waiting, enough := context.WithTimeout(ctx, time.Minute)
				defer enough()
				go func() { confirmed <- waits.Confirmed(waiting) }()
				time.Sleep(100 * time.Millisecond)
				crumb := &Crumb{s, mine.paths}
				for tree, names := range map[string]bool{`{"of":"z"}`: false, `{"of":"a"}`: true} {
					if said, err := crumb.NotUndone(ctx, json.RawMessage(tree), []string{"vip"}); said != names || err != nil {
						w.Errorf("said of %s: %v, %v", tree, said, err)
					}
				}
				if err := <-confirmed; !errors.Is(err, ErrCrumbChanged) || !slices.Equal(waits.Previous.Left, []string{"vip"}) {
					w.Errorf("who waits learns: %v, %q", err, waits.Previous.Left)
				}
				if err := late.Inscribe(ctx); !errors.Is(err, ErrCrumbChanged) || len(late.Previous.Left) == 0 {
					w.Errorf("overwritten: %v", err)
				}
				never := func(Leftover) error { return nil }
				other := &Crumb{s2, mine.paths}
				if removed, err := other.MarkDead(ctx, json.RawMessage(`{"of":"a"}`), never); removed || err != nil {
					w.Errorf("removed by another node: %v, %v", removed, err)
				}
				if removed, err := crumb.MarkDead(ctx, json.RawMessage(`{"of":"a"}`), never); !removed || err != nil {
					w.Errorf("not removed: %v, %v", removed, err)
				}
				return waits.Release(ctx)
			})
			return nil
		})
	})
}

// P5: a node that was asked before the breadcrumb listed what survives a boot did not look for it, so another boot of its machine proved nothing.
func TestWhoWaitsLearnsWhatSurvivesABoot(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			mine, err := activate(ctx, s)
			if err != nil {
				return err
			}
			w.byHand(Paths{"/understudy", "svc"}.Lock())
			w.claims("b", func(ctx context.Context, _ *Session, waits *Claim) error {
				confirmed := make(chan error, 1)
				waiting, enough := context.WithTimeout(ctx, time.Minute)
				defer enough()
				go func() { confirmed <- waits.Confirmed(waiting) }()
				time.Sleep(100 * time.Millisecond)
				listed := Effects{Survive: EffectsLeft{"role"}}
				if said, err := (&Crumb{s, mine.paths}).ListEffects(ctx, json.RawMessage(`{"of":"a"}`), listed); !said || err != nil {
					w.Errorf("listed: %v, %v", said, err)
				}
				if err := <-confirmed; !errors.Is(err, ErrCrumbChanged) || !waits.Previous.Lists(listed) {
					w.Errorf("who waits learns: %v, %+v", err, waits.Previous.Effects)
				}
				return waits.Release(ctx)
			})
			return nil
		})
	})
}

// Whatever stands there, in however broken a breadcrumb, says that something is left.
func TestEveryWordOfAnEffectCounts(t *testing.T) {
	for _, data := range []string{
		`{"node":"a","host":"a","session_timeout_ms":1,"since":"2026-01-01T00:00:00Z","survives_boot":true}`, `{"node":"a/b","survives_boot":["role"]}`,
		`{"node":"a","host":"a","session_timeout_ms":1,"since":"2026-01-01T00:00:00Z","effects_left":["vip"]}`,
		`{"node":"a","host":"a","session_timeout_ms":1,"since":"2026-01-01T00:00:00Z","effects_left":true}`,
		`{"node":"a","host":"a","session_timeout_ms":1,"since":"2026-01-01T00:00:00Z","effects_left":[]}`,
		`{"node":"a","host":"a","session_timeout_ms":1,"since":"2026-01-01T00:00:00Z","effects_left":null}`,
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
			if err := left.Close(w.Context(), w.dial, []Release{of}, all); err != nil {
				w.Error(err)
			}
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
