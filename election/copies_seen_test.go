package election

import (
	"context"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// The primary learns at once what any of the others tells, and who begins to tell. The others are not disturbed by that.
func TestThePrimaryHearsWhatOthersSee(t *testing.T) {
	inWorld(t, func(w *world) {
		w.claims("a", func(ctx context.Context, s *Session, cl *Claim) error {
			mine := &Copies{s: s, paths: cl.paths}
			w.seesCopies(ctx, &Candidate{s: s, paths: cl.paths}) // makes the folder
			w.within("z", func(theirs context.Context, other *Session) error {
				tell := func(node string, well bool) {
					must.Report(w, other.own(theirs, cl.paths.Copies()+"/"+node, encode(CopyReport{Sees: &SeenPrimary{Token: 1, Well: well}})))
				}
				hears := func(ctx context.Context, c *Copies, node string, well bool) bool {
					seen, err := c.Read(ctx)
					must.OK(w, err)
					time.AfterFunc(time.Second, func() { tell(node, well) })
					began := time.Now()
					must.Report(w, c.Wait(ctx, seen, time.Minute))
					return time.Since(began) < time.Minute
				}
				for _, node := range []string{"b", "c", "d", "e"} {
					if !hears(ctx, mine, node, true) {
						w.Errorf("%s, which is new, is not heard", node)
					}
				}
				for _, node := range []string{"b", "e"} {
					if !hears(ctx, mine, node, false) {
						w.Errorf("%s is not heard", node)
					}
					if hears(theirs, &Copies{s: other, paths: cl.paths}, node, true) {
						w.Errorf("a follower is disturbed by %s", node)
					}
				}
				seen := w.seesCopies(ctx, &Candidate{s: s, paths: cl.paths})
				if one, _ := seen.Of("e"); one.Sees == nil || one.Sees.Token != 1 || !one.Sees.Well {
					w.Errorf("%+v", one)
				}
				return nil
			})
			return nil
		})
	})
}

// How far a copy is, is told by heartbeats, and costs no write of its own.
func TestAHeartbeatTellsHowFarACopyIs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			position, asked := uint64(0), time.Now()
			stop := s.Self.SayAt("svc", func() (At, bool) {
				position++
				return At{Token: 7, Position: position, Time: asked}, position > 1
			})
			before, _ := s.get(ctx, NodesDir(s.cfg.Root)+"/a")
			time.Sleep(testTimeout)
			at, ok, err := c.Copies().At(ctx, "a")
			after, _ := s.get(ctx, NodesDir(s.cfg.Root)+"/a")
			beats := int32(testTimeout/beatEvery(testLease)) + 1
			if err != nil || !ok || at.Token != 7 || at.Position != position || !at.Time.Equal(asked) || after.stat.Version-before.stat.Version > beats {
				w.Errorf("%+v, %v, %v, %d writes", at, ok, err, after.stat.Version-before.stat.Version)
			}
			stop()
			time.Sleep(testTimeout)
			if at, ok, err := c.Copies().At(ctx, "a"); ok || err != nil {
				w.Errorf("afterwards: %+v, %v", at, err)
			}
			if at, ok, err := c.Copies().At(ctx, "nobody"); ok || err != nil {
				w.Errorf("%+v, %v", at, err)
			}
			return nil
		})
	})
}
