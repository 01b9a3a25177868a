package election

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/zkfaults"
)

// A server answers with more codes than the client library has names for.
func TestEveryCodeIsAnAnswerWithItsName(t *testing.T) {
	for code, c := range map[jute.Code]struct {
		unknown bool // whether it was done
		name    string
	}{
		jute.NoAuth: {false, "not authenticated"}, jute.QuotaExceeded: {false, "quota exceeded"}, jute.RequiresSASL: {false, "requires SASL"}, -999: {false, "-999"},
		jute.ThrottledOp: {true, "throttled"}, jute.MarshallingError: {true, "marshalling error"}, jute.SessionMoved: {true, "session moved"},
	} {
		inWorld(t, func(w *world) {
			w.asOperator(func(ctx context.Context, s *Session) error {
				w.zk.Refuse(zkfaults.Match{Op: jute.OpCreate, Path: "/one"}, code)
				err := s.create(ctx, "/one", nil, 0)
				if unknown(err) != c.unknown || answered(err) == c.unknown || !strings.Contains(err.Error(), c.name) {
					w.Errorf("%v: %v, unknown %v", int(code), err, unknown(err))
				}
				return nil
			})
			w.within("a", func(ctx context.Context, s *Session) error {
				cand := stand(ctx, s, Race)
				o, err := cand.Wait(ctx)
				try(err)
				w.zk.Refuse(zkfaults.Match{Op: jute.OpMulti, Path: cand.paths.Lock()}, code)
				cl, err := cand.Take(ctx, o, BreadCrumb{Tree: []byte(`{}`)})
				if code == jute.SessionMoved { // the client names it, and the next server has another answer
					return nil
				}
				if cl != nil || err == nil || !strings.Contains(err.Error(), c.name) || cand.MayHoldLock() != c.unknown {
					w.Errorf("%v: the claim: %v, unsure %v", int(code), err, cand.MayHoldLock())
				}
				return cand.Retreat(ctx)
			})
		})
	}
}

// A record that cannot be written ends the fencing, with the reason.
func TestAnInscriptionThatIsRefusedFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.leaveCrumb()
		w.claims("a", func(ctx context.Context, _ *Session, c *Claim) error {
			ctx, enough := context.WithTimeout(ctx, time.Minute)
			defer enough()
			w.zk.Refuse(zkfaults.Match{Op: jute.OpMulti, Path: c.paths.Crumb(), Count: 5}, jute.QuotaExceeded)
			if err := c.Inscribe(ctx); !errors.Is(err, jute.QuotaExceeded) {
				w.Errorf("%v", err)
			}
			w.zk.Forget()
			return c.Release(ctx)
		})
	})
}
