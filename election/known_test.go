package election

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// That a node was there outlasts its session, and where it is not connected any more, the others know.
func TestANodeStaysKnownAfterItsSession(t *testing.T) {
	inWorld(t, func(w *world) {
		keep := func(node string, want string, services ...string) {
			w.within(node, func(ctx context.Context, s *Session) error {
				ctx, enough := context.WithTimeout(ctx, KnownEvery+time.Second)
				defer enough()
				told := 0
				s.KeepKnown(ctx, func() []string { return services }, func(connected map[string]bool) {
					told++
					if got := fmt.Sprint(connected); got != want && (told < 3 || connected != nil) {
						w.Errorf("%s sees %s, not %s", node, got, want)
					}
				})
				if told != 3 && (len(services) > 0 || told < 7) { // a node without services looks more often: it may be given one
					w.Errorf("%s was told %d times", node, told)
				}
				return nil
			})
		}
		keep("once", "map[]")
		keep("b", "map[b:true]", "db", "web")
		w.within("b", func(ctx context.Context, s *Session) error {
			return s.SayStopped(ctx, []string{"db", "web"})
		})
		keep("a", "map[a:true b:false]", "db")
		w.within("a", func(ctx context.Context, s *Session) error {
			v, err := s.get(ctx, KnownDir(s.cfg.Root)+"/b")
			k := ReadKnown(v.data)
			if fmt.Sprint(k.Services) != "[db web]" || k.Node != "b" || !k.Stopped || v.stat.EphemeralOwner != 0 {
				w.Errorf("%+v %v", k, err)
			}
			if written := time.UnixMilli(v.stat.Mtime).Sub(time.UnixMilli(v.stat.Ctime)); written < KnownEvery {
				w.Errorf("it was not written again: %v", written)
			}
			return err
		})
	})
}

// A node that is given its first service, and lost soon after that, was known.
func TestANodeIsKnownSoonAfterItsFirstService(t *testing.T) {
	inWorld(t, func(w *world) {
		began := time.Now()
		w.within("a", func(ctx context.Context, s *Session) error {
			ctx, enough := context.WithTimeout(ctx, KnownEvery-time.Second)
			defer enough()
			s.KeepKnown(ctx, func() []string {
				if time.Since(began) < KnownEvery/3 {
					return nil
				}
				return []string{"db"}
			}, func(map[string]bool) {})
			return nil
		})
		w.within("b", func(ctx context.Context, s *Session) error {
			v, err := s.get(ctx, KnownDir(s.cfg.Root)+"/a")
			if !v.exists {
				w.Error("nobody knows it")
			}
			return err
		})
	})
}
