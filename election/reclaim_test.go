package election

import (
	"context"
	"errors"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/zkfaults"
)

// lapsed calls f in the next session of a node whose session has expired while it was active.
func (w *world) lapsed(f func(ctx context.Context, s *Session, cand *Candidate, claim *Claim, left CarriedClaim)) {
	w.Helper()
	left := w.carriedOver("a")
	time.Sleep(3 * testTimeout)
	w.within("a", func(ctx context.Context, s *Session) error {
		cand := stand(ctx, s, Race)
		claim, err := cand.Lapsed(left.Claim)
		if err == nil {
			f(ctx, s, cand, claim, left.Claim)
		}
		return err
	})
}

// A term goes on in the next session if nobody has claimed its lock since, and keeps its token. It is a claim as any other from then on.
func TestALockIsTakenAgainIfNobodyHasClaimedIt(t *testing.T) {
	for name, before := range map[string]func(w *world){
		"answered":     func(*world) {},
		"not answered": func(w *world) { w.zk.LoseReply(zkfaults.Match{Op: jute.OpMulti}) },
		"not sent":     func(w *world) { w.zk.CloseBefore(zkfaults.Match{Op: jute.OpMulti}) },
	} {
		inWorld(t, func(w *world) {
			w.lapsed(func(ctx context.Context, s *Session, cand *Candidate, claim *Claim, left CarriedClaim) {
				before(w)
				if err := cand.Reclaim(ctx, claim); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				lock, err := s.get(ctx, claim.paths.Lock())
				held, bad := decode[Lock](lock.data)
				if err != nil || bad != nil || lock.stat.EphemeralOwner != s.ID() || held.Token != left.Token || claim.Token != left.Token || lock.stat.Czxid <= left.Token {
					t.Errorf("%s: the lock is %s, of %x, czxid %d; the token %d was %d", name, lock.data, lock.stat.EphemeralOwner, lock.stat.Czxid, claim.Token, left.Token)
				}
				trail, err := s.get(ctx, claim.paths.Crumb())
				if crumb, bad := ReadBreadCrumb(trail.data); err != nil || bad != nil || crumb.Session != SessionName(s.ID()) || crumb.Token != left.Token {
					t.Errorf("%s: the breadcrumb is %s", name, trail.data)
				}
				watching, enough := context.WithTimeout(ctx, testTimeout)
				defer enough()
				if err := claim.Watch(watching); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: it is watched in vain: %v", name, err)
				}
				if carried, err := claim.Carry(); err != nil || carried.Lock != lock.stat.Czxid || carried.Name == left.Name {
					t.Errorf("%s: carried as %+v, %v", name, carried, err)
				}
				if err := claim.Release(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				for _, path := range []string{claim.paths.Lock(), claim.paths.Crumb()} {
					if there, err := exists(ctx, s, path); there || err != nil {
						t.Errorf("%s: %s is there: %v, %v", name, path, there, err)
					}
				}
			})
		})
	}
}

// P1: whoever has claimed since may have waited for the end of a promise, even if it has given the lock back. The breadcrumb of the term, whose
// programs are dead then, is removed, and nothing else.
func TestALockThatWasClaimedMeanwhileIsNotTakenAgain(t *testing.T) {
	for name, claimed := range map[string]func(ctx context.Context, s *Session, c *Claim) error{
		"held":       func(context.Context, *Session, *Claim) error { return nil },
		"given back": func(ctx context.Context, _ *Session, c *Claim) error { return c.Release(ctx) },
		"inscribed":  func(ctx context.Context, _ *Session, c *Claim) error { return c.Inscribe(ctx) },
	} {
		inWorld(t, func(w *world) {
			w.lapsed(func(ctx context.Context, s *Session, cand *Candidate, lapsed *Claim, _ CarriedClaim) {
				w.within("b", func(ctx context.Context, other *Session) error {
					_, c, err := claim(ctx, other, Race)
					if err == nil {
						err = claimed(ctx, other, c)
					}
					if err != nil {
						return err
					}
					if err := cand.Reclaim(ctx, lapsed); !errors.Is(err, ErrLost) || errors.Is(err, ErrUnresolved) {
						t.Errorf("%s: %v", name, err)
					}
					if err := lapsed.Release(ctx); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if there, err := exists(ctx, s, c.paths.Lock()); err != nil || there != (name != "given back") {
						t.Errorf("%s: the lock is there: %v, %v", name, there, err)
					}
					if there, err := exists(ctx, s, c.paths.Crumb()); err != nil || there != (name == "inscribed") {
						t.Errorf("%s: the breadcrumb is there: %v, %v", name, there, err)
					}
					return nil
				})
			})
		})
	}
}
