package election

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/testbed/must"
)

// P1: whatever this node does, it knows how long any lease may last that it could ever see.
func TestTheLongestSessionOfAnyNodeIsKnown(t *testing.T) {
	const long = 3 * testLease
	longer := func(w *world, node string, f func(context.Context, *Session) error) {
		cfg := w.config(node)
		cfg.Lease = long
		e := New(cfg)
		must.OK(w, e.Open(w.Context(), f))
		e.Wait()
	}
	there := func(context.Context, *Session) error { synctest.Wait(); return nil }
	for name, shows := range map[string]func(w *world, ctx context.Context, s *Session) error{
		"a node that comes": func(w *world, _ context.Context, _ *Session) error {
			longer(w, "b", there)
			return nil
		},
		"a node that is there": nil,
		"a record that is found at joining": func(w *world, ctx context.Context, s *Session) error {
			w.asOperator(func(ctx context.Context, o *Session) error {
				if _, _, err := o.NewCandidate(ctx, "svc", Race); err != nil {
					return err
				}
				return o.create(ctx, Paths{"/understudy", "svc"}.Crumb(), encode(BreadCrumb{Node: "x", LeaseMs: long.Milliseconds()}), 0)
			})
			_, _, err := s.NewCandidate(ctx, "svc", Queue)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var told time.Duration
				cfg := w.config("a")
				cfg.Saw = func(longest time.Duration) { told = longest }
				e := New(cfg)
				look := func(ctx context.Context, s *Session) error {
					if shows != nil {
						if err := shows(w, ctx, s); err != nil {
							return err
						}
					}
					synctest.Wait()
					if s.Longest() != long || told != long || s.LeaseLength() != testLease {
						w.Errorf("known %v, told %v, and the own one is %v", s.Longest(), told, s.LeaseLength())
					}
					return nil
				}
				first := func() error { return e.Open(w.Context(), look) }
				if shows != nil {
					must.OK(w, first())
				} else {
					longer(w, "b", func(context.Context, *Session) error { return first() })
				}
				shows = func(*world, context.Context, *Session) error { return nil } // the next session knows it
				must.OK(w, first())
			})
		})
	}
}

// So does the next image of this process, and the next supervisor.
func TestTheLongestSessionOfAnyNodeIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config("a")
		cfg.Seen = 3 * testTimeout
		if got := New(cfg).seen.get(); got != 3*testTimeout {
			w.Errorf("known %v", got)
		}
		left := w.carriedOver("a").Session
		left.Longest = 5 * testLease
		err := w.resume("a", left, func(_ context.Context, s *Session) error {
			if s.Longest() != 5*testLease {
				w.Errorf("after an upgrade %v", s.Longest())
			}
			return nil
		})
		must.OK(w, err)
	})
}
