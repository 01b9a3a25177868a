package election

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// byHand does what an operator can do to a lock.
func (w *world) byHand(paths ...string) {
	w.Helper()
	w.asOperator(func(ctx context.Context, s *Session) error {
		var ops []any
		for _, p := range paths {
			ops = append(ops, &zk.DeleteRequest{Path: p, Version: -1})
		}
		_, err := s.multi(ctx, ops...)
		return err
	})
}

// held says what is there of a service.
func (w *world) held(s *Session) string {
	names, err := s.children(w.Context(), Paths{"/understudy", "svc"}.Dir())
	if err != nil {
		w.Error(err)
	}
	var held []string
	for _, n := range names {
		if strings.HasPrefix(n, "Active") {
			held = append(held, n)
		}
	}
	slices.Sort(held)
	return strings.Join(held, " ")
}

// A previous active that signs its breadcrumb late, after the lock was deleted by hand, has not said that its child is dead.
func TestLateSignatureIsNoConfirmation(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.activates("a", func(ctx context.Context, s *Session, a *Claim) error {
			w.byHand(p.Lock())
			w.claims("b", func(ctx context.Context, s2 *Session, b *Claim) error {
				if lives, err := b.PreviousLives(ctx); !lives || err != nil {
					w.Errorf("the previous active's session lives: %v %v", lives, err)
				}
				confirmed := make(chan error, 1)
				go func() { confirmed <- b.Confirmed(ctx) }()
				time.Sleep(100 * time.Millisecond)
				if err := a.writeToken(w.Context()); err != nil {
					return err
				}
				select {
				case err := <-confirmed:
					w.Errorf("confirmed by a signature: %v", err)
				case <-time.After(time.Second):
				}
				if err := a.Release(w.Context()); err != nil { // its child is dead now
					return err
				}
				if err := <-confirmed; err != nil {
					w.Errorf("not confirmed by the breadcrumb's removal: %v", err)
				}
				if held := w.held(s2); held != lockName {
					w.Errorf("left: %q", held)
				}
				return b.Inscribe(ctx)
			})
			return nil
		})
	})
}

// Who lost the lock while fencing gives back nothing of the next owner's.
func TestReleaseAfterALostLockLeavesTheNextOwners(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.leaveCrumb()
		w.claims("a", func(ctx context.Context, s *Session, fencing *Claim) error {
			w.byHand(p.Lock())
			w.activates("b", func(ctx context.Context, s2 *Session, b *Claim) error {
				if err := fencing.Release(w.Context()); err != nil {
					w.Errorf("release: %v", err)
				}
				if held := w.held(s2); held != crumbName+" "+lockName {
					w.Errorf("left: %q", held)
				}
				return b.Release(ctx)
			})
			return nil
		})
	})
}

// Versions of breadcrumbs start again, claims are numbered on: a late release does not reach a later claim.
func TestLateReleaseDoesNotReachALaterClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.activates("a", func(ctx context.Context, s *Session, a *Claim) error {
			if err := a.writeToken(ctx); err != nil {
				return err
			}
			a.version = 1 // as it would have read
			w.byHand(p.Lock())
			for _, last := range []bool{false, true} {
				w.activates("b", func(ctx context.Context, s2 *Session, b *Claim) error {
					if last {
						if err := b.writeToken(ctx); err != nil {
							return err
						}
						if err := a.Release(w.Context()); err != nil {
							w.Errorf("release: %v", err)
						}
						if held := w.held(s2); held != crumbName+" "+lockName {
							w.Errorf("left: %q", held)
						}
						b.version = 1
					}
					return b.Release(ctx)
				})
			}
			return nil
		})
	})
}

// Lock and node's znode both deleted by hand: what the previous active says as a candidate shows that its session lives.
func TestAPreviousActiveLivesAsLongAsAnythingOfItsSession(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.within("a", func(ctx context.Context, s *Session) error {
			c, _, err := claim(ctx, s, Race)
			if err != nil {
				return err
			}
			if err := c.Members.Announce(ctx, Member{Role: "active"}); err != nil {
				return err
			}
			w.byHand(p.Lock())
			for _, gone := range []string{NodesDir("/understudy") + "/a", p.Members() + "/a"} {
				w.byHand(gone)
				w.claims("b", func(ctx context.Context, s2 *Session, b *Claim) error {
					lives, err := b.PreviousLives(ctx)
					if lives != (gone != p.Members()+"/a") {
						w.Errorf("with %s gone, it lives: %v", gone, lives)
					}
					return err
				})
			}
			return nil
		})
	})
}

// The next claim's breadcrumb is at the same version: a signature that comes late does not reach it.
func TestLateSignatureDoesNotReachALaterBreadcrumb(t *testing.T) {
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, s *Session, a *Claim) error {
			late := *a
			if err := a.Release(ctx); err != nil {
				return err
			}
			w.activates("b", func(ctx context.Context, s2 *Session, b *Claim) error {
				if err := late.writeToken(w.Context()); err != nil {
					w.Errorf("sign: %v", err)
				}
				if err := b.reread(ctx); err != nil {
					return err
				}
				if b.Previous != nil {
					w.Errorf("the breadcrumb names %s", b.Previous.Node)
				}
				return b.Release(ctx)
			})
			return nil
		})
	})
}

// P2: in a folder that was made anew, numbers of claims begin again, and so do versions of breadcrumbs: what is claimed there may look like the
// claim of before to a transaction. Whoever knows that its lock is gone deletes none.
func TestALockInANewFolderIsNotDeletedForTheOldOne(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.activates("a", func(ctx context.Context, _ *Session, a *Claim) error {
			w.byHand(p.Lock(), p.Crumb(), p.Members(), p.Queue(), p.History(), p.Control(), p.Preferred(), p.Dir())
			w.claims("b", func(ctx context.Context, s *Session, b *Claim) error {
				if a.number != b.number || a.version != b.version {
					w.Errorf("number %d, then %d; version %d, then %d", a.number, b.number, a.version, b.version)
				}
				if err := a.verify(ctx); !errors.Is(err, ErrLost) {
					w.Errorf("the lock is ours: %v", err)
				}
				if err := a.Release(ctx); err != nil {
					w.Error(err)
				}
				if held := w.held(s); held != "ActiveBreadCrumb ActiveStandbyElectorLock" {
					w.Errorf("what is left is %q", held)
				}
				return b.Release(ctx)
			})
			return nil
		})
	})
}
