package election

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/must"
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
	must.Report(w, err)
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
				if _, err := b.Delay(ctx, 0); !b.leased || err != nil {
					w.Errorf("the previous active's session lives: %v %v", b.leased, err)
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
			try(a.writeToken(ctx))
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

// The next claim's breadcrumb is at the same version: a signature that comes late does not reach it.
func TestLateSignatureDoesNotReachALaterBreadcrumb(t *testing.T) {
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, s *Session, a *Claim) error {
			late := *a
			try(a.Release(ctx))
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

// P2: in a folder that was made anew, the number of claims begins again, and so do versions of breadcrumbs: what is claimed there looks like
// the claim of before to a transaction that checks these. It checks names, which never come again.
func TestALockInANewFolderIsNotDeletedForTheOldOne(t *testing.T) {
	for name, act := range map[string]func(context.Context, *Session, *Claim) error{
		"release": func(ctx context.Context, _ *Session, a *Claim) error { return a.Release(ctx) },
		"token":   func(ctx context.Context, _ *Session, a *Claim) error { a.crumb.Token = 0; return a.writeToken(ctx) },
		"leftover": func(ctx context.Context, s *Session, a *Claim) error {
			crumb := Crumb{s, a.paths}
			_, err := crumb.NoteLeftover(ctx, a.crumb.Tree, Leftover{Pid: 7})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.activates("a", func(ctx context.Context, sa *Session, a *Claim) error {
					w.deleteAll()
					w.claims("b", func(ctx context.Context, s *Session, b *Claim) error {
						if a.version != b.version || a.name == b.name || a.record == b.record {
							w.Errorf("version %d, then %d; name %s, then %s; record %s, then %s", a.version, b.version, a.name, b.name, a.record, b.record)
						}
						before, err := s.all(ctx, a.paths)
						try(err)
						must.Report(w, act(ctx, sa, a))
						after, err := s.all(ctx, a.paths)
						for i := range before {
							if before[i].exists != after[i].exists || before[i].stat.Mzxid != after[i].stat.Mzxid {
								w.Errorf("lock, breadcrumb or promotion %d: it was %+v, and is %+v", i, before[i], after[i])
							}
						}
						return errors.Join(err, b.Release(ctx))
					})
					return nil
				})
			})
		})
	}
}

// deleteAll is an operator who deletes all znodes of the service at once, and these.
func (w *world) deleteAll(more ...string) {
	w.Helper()
	p := Paths{"/understudy", "svc"}
	var paths []string
	w.asOperator(func(ctx context.Context, s *Session) error {
		for _, folder := range []string{p.Members(), p.Queue(), p.History(), p.Control(), p.Preferred(), p.Dir()} {
			names, err := s.children(ctx, folder)
			try(err)
			for _, name := range names {
				if path := folder + "/" + name; !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
			}
		}
		return nil
	})
	slices.SortStableFunc(paths, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	w.byHand(slices.Concat(paths, []string{p.Dir()}, more)...)
}
