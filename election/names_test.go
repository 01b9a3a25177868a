package election

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
)

// named counts the names there are.
func (w *world) named(s *Session) (claims, records int) {
	w.Helper()
	look, err := s.names(w.Context(), Paths{"/understudy", "svc"})
	must.Report(w, err)
	return len(look.Claims), len(look.Records)
}

// deleteNames is an operator who deletes the names that begin so.
func (w *world) deleteNames(prefix string) {
	w.Helper()
	w.asOperator(func(ctx context.Context, s *Session) error {
		look, err := s.names(ctx, Paths{"/understudy", "svc"})
		for _, path := range append(look.Claims, look.Records...) {
			if err == nil && strings.Contains(path, prefix) {
				err = s.delete(ctx, path)
			}
		}
		return err
	})
}

// However terms end, there is one name of a claim afterwards, and one of a record where there is a record.
func TestNamesDoNotPileUp(t *testing.T) {
	p := Paths{"/understudy", "svc"}
	inWorld(t, func(w *world) {
		for range 3 {
			w.activates("a", func(ctx context.Context, s *Session, c *Claim) error { return c.Release(ctx) })
			w.claims("b", func(context.Context, *Session, *Claim) error { return nil }) // its session ends
			w.activates("a", func(ctx context.Context, s *Session, c *Claim) error {
				if claims, records := w.named(s); claims != 1 || records != 1 {
					w.Errorf("%d claims, %d records", claims, records)
				}
				w.byHand(p.Crumb())
				try(c.recheck(ctx))
				try(c.Inscribe(ctx))
				if claims, records := w.named(s); claims != 1 || records != 1 {
					w.Errorf("the record is written again: %d claims, %d records", claims, records)
				}
				return nil
			})
			w.byHand(p.Crumb()) // its name stays, until the next claim
		}
		w.activates("a", func(ctx context.Context, s *Session, c *Claim) error {
			if claims, records := w.named(s); claims != 1 || records != 1 {
				w.Errorf("%d claims, %d records", claims, records)
			}
			return c.Release(ctx)
		})
		w.asOperator(func(_ context.Context, s *Session) error {
			if claims, records := w.named(s); claims != 1 || records != 0 {
				w.Errorf("all is given back: %d claims, %d records", claims, records)
			}
			return nil
		})
	})
}

// Nobody is stuck because an operator has deleted a name.
func TestWhatIsMissingOfTheNamesIsMadeAgain(t *testing.T) {
	p := Paths{"/understudy", "svc"}
	t.Run("the record's, and it is given back", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.activates("a", func(ctx context.Context, s *Session, c *Claim) error {
				w.deleteNames(recordPrefix)
				try(c.Release(ctx))
				if held := w.held(s); held != "" {
					w.Errorf("left: %q", held)
				}
				return nil
			})
		})
	})
	t.Run("the record's, and it is signed", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.activates("a", func(ctx context.Context, s *Session, c *Claim) error {
				w.deleteNames(recordPrefix)
				try(c.writeToken(ctx))
				b, _, err := (&Crumb{s, p}).Named(ctx)
				if v, _ := s.get(ctx, p.Crumb()); v.stat.Version != 1 {
					w.Errorf("not signed: %+v", b)
				}
				return err
			})
		})
	})
	t.Run("the record's, and it is fenced", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.claims("b", func(context.Context, *Session, *Claim) error { return nil })
			w.deleteNames(recordPrefix)
			w.activates("a", func(ctx context.Context, s *Session, c *Claim) error { return c.Release(ctx) })
		})
	})
	t.Run("the record's, and its node finds that its program is dead", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.claims("a", func(context.Context, *Session, *Claim) error { return nil })
			w.deleteNames("-")
			w.within("a", func(ctx context.Context, s *Session) error {
				tree := json.RawMessage(`{"of":"a"}`)
				if said, err := (&Crumb{s, p}).NoteLeftover(ctx, tree, Leftover{Pid: 7}); !said || err != nil {
					w.Errorf("noted: %v, %v", said, err)
				}
				if gone, err := (&Crumb{s, p}).MarkDead(ctx, tree, func(Leftover) error { return nil }); !gone || err != nil {
					w.Errorf("removed: %v, %v", gone, err)
				}
				return nil
			})
		})
	})
	t.Run("the claim's, and it is free", func(t *testing.T) {
		inWorld(t, func(w *world) {
			w.activates("a", func(ctx context.Context, s *Session, c *Claim) error { return c.Release(ctx) })
			w.deleteNames(claimPrefix)
			w.activates("b", func(ctx context.Context, s *Session, c *Claim) error { return c.Release(ctx) })
		})
	})
	t.Run("the claim's, while it is held", func(t *testing.T) {
		inWorld(t, func(w *world) {
			err := w.open("a", func(ctx context.Context, s *Session) error {
				c := activated(ctx, s)
				w.deleteNames(claimPrefix)
				return c.Release(ctx)
			})()
			if !errors.Is(err, ErrTorn) {
				w.Errorf("the session ended with %v", err)
			}
			w.claims("b", func(ctx context.Context, _ *Session, c *Claim) error { return c.Release(ctx) })
		})
	})
}

// P2: the holder of the lock writes a record where an operator has confirmed the death of the one before. A removal of that one that comes
// late finds the same claim, and a record of the same version.
func TestALateRemovalDoesNotReachALaterRecord(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.claims("a", func(context.Context, *Session, *Claim) error { return nil })
		w.within("c", func(ctx context.Context, s *Session) error {
			w.claims("b", func(ctx context.Context, other *Session, b *Claim) error {
				_, late := (&Crumb{s, p}).tryOfTree(ctx, json.RawMessage(`{"of":"a"}`), func(named BreadCrumb, v view) (any, error) {
					look, err := other.names(ctx, p)
					if err == nil {
						err = other.change(ctx, look, named, v.stat.Version, &zk.DeleteRequest{Path: p.Crumb(), Version: v.stat.Version})
					}
					if err == nil {
						err = b.recheck(ctx)
					}
					if err == nil {
						err = b.Inscribe(ctx)
					}
					return &zk.DeleteRequest{Path: p.Crumb(), Version: b.version}, err
				})
				if !errors.Is(late, zk.ErrNoNode) {
					w.Errorf("removed: %v", late)
				}
				if held := w.held(other); held != crumbName+" "+lockName {
					w.Errorf("left: %q", held)
				}
				return b.Release(ctx)
			})
			return nil
		})
	})
}

// Nor one of a later claim, whose maker did not see the name that an operator has left of the record before.
func TestALateRemovalDoesNotReachTheRecordOfALaterClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.claims("a", func(context.Context, *Session, *Claim) error {
			w.within("c", func(ctx context.Context, s *Session) error {
				w.within("b", func(ctx context.Context, other *Session) error {
					var b *Claim
					var failed error
					claimed := make(chan struct{})
					go func() {
						defer close(claimed)
						_, b, failed = claim(ctx, other, Race)
					}()
					time.Sleep(time.Second) // it waits for the lock
					_, late := (&Crumb{s, p}).tryOfTree(ctx, json.RawMessage(`{"of":"a"}`), func(_ BreadCrumb, v view) (any, error) {
						w.byHand(p.Crumb(), p.Lock())
						<-claimed
						return &zk.DeleteRequest{Path: p.Crumb(), Version: v.stat.Version}, failed
					})
					if _, records := w.named(s); records != 2 || !errors.Is(late, zk.ErrNoNode) {
						w.Errorf("%d names of records; removed: %v", records, late)
					}
					if held := w.held(other); held != crumbName+" "+lockName {
						w.Errorf("left: %q", held)
					}
					return b.Release(ctx)
				})
				return nil
			})
			return nil
		})
	})
}

// P1: who has read of no claim, or of an earlier one, does not claim beside a later one whose lock is gone: that may come back for its lock.
func TestAClaimDeletesTheNamesOfAllBefore(t *testing.T) {
	for name, first := range map[string]bool{"of none": false, "of an earlier one": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				p := Paths{"/understudy", "svc"}
				if first {
					w.claims("c", func(ctx context.Context, _ *Session, c *Claim) error { return c.Release(ctx) })
				}
				w.within("b", func(ctx context.Context, s *Session) error {
					cand := stand(ctx, s, Race)
					o, err := cand.Wait(ctx)
					try(err)
					w.activates("a", func(ctx context.Context, _ *Session, a *Claim) error {
						w.byHand(p.Lock())
						for again := true; again; {
							b, err := cand.Take(w.Context(), o, BreadCrumb{Tree: []byte(`{"of":"b"}`)})
							if again = b == nil && err == nil; again {
								o, err = cand.Wait(w.Context())
							}
							if err != nil {
								return err
							}
						}
						if claims, _ := w.named(s); claims != 1 {
							w.Errorf("%d claims", claims)
						}
						if err := a.Release(ctx); err != nil {
							return err
						}
						if there, err := exists(ctx, s, p.Lock()); !there || err != nil {
							w.Errorf("its release has deleted a later lock: %v", err)
						}
						return nil
					})
					return nil
				})
			})
		})
	}
}

// A claim, and a release, are one request each, as ever.
func TestAClaimAndAReleaseAreOneRequestEach(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			cand := stand(ctx, s, Race)
			o, err := cand.Wait(ctx)
			try(err)
			time.Sleep(time.Millisecond)
			before := w.zk.Requests()
			c, err := cand.Take(ctx, o, BreadCrumb{Tree: []byte(`{}`)})
			try(err)
			try(errors.Join(c.Inscribe(ctx), c.Release(ctx)))
			after := w.zk.Requests()
			for op, n := range after {
				wanted := map[jute.Op]int64{jute.OpMulti: 2}[op]
				if sent := n - before[op]; sent != wanted && op != jute.OpSetData && op != jute.OpPing {
					w.Errorf("%d requests %v", sent, op)
				}
			}
			return nil
		})
	})
}
