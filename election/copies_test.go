package election

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/must"
)

// seesCopies looks, and fails the test if that is impossible.
func (w *world) seesCopies(ctx context.Context, c *Candidate) CopiesSeen {
	w.Helper()
	v, err := c.Copies().Read(ctx)
	must.OK(w, err)
	return v
}

// All nodes name a vacancy alike, and no two vacancies have one name: what was told in one says nothing in the next.
func TestCopiesAreToldForOneVacancy(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, a *Session) error {
			mine, _, err := a.NewCandidate(ctx, "svc", Race)
			if err != nil {
				return err
			}
			w.within("b", func(ctx context.Context, b *Session) error {
				theirs, _, err := b.NewCandidate(ctx, "svc", Race)
				if err != nil {
					return err
				}
				at := uint64(7)
				first := w.seesCopies(ctx, theirs)
				if err := theirs.Copies().Tell(ctx, CopyReport{Vacancy: first.Vacancy, Position: &at, Followed: 3, Stands: true}); err != nil {
					return err
				}
				seen := w.seesCopies(ctx, mine)
				told, ok := seen.Of("b")
				if !ok || seen.Vacancy == 0 || told.Vacancy != seen.Vacancy || told.Position == nil || *told.Position != 7 || told.Host != "b" || !told.Stands {
					w.Errorf("%+v", seen)
				}
				o, err := theirs.Wait(ctx)
				if err != nil {
					return err
				}
				held, err := theirs.Take(ctx, o.After(first.Claims), BreadCrumb{Tree: []byte(`{}`)})
				if err != nil || held == nil {
					w.Fatal(held, err)
				}
				if seen := w.seesCopies(ctx, mine); seen.Vacancy != 0 || seen.Holder != "b" || seen.Token != held.Token || seen.Promoted.Token != 0 || !seen.Crumb {
					w.Errorf("held: %+v", seen)
				}
				for asks, want := range map[int64]int64{0: 0, held.Token - 1: 0, held.Token: -held.Token} {
					if err := theirs.Copies().Tell(ctx, CopyReport{Asks: asks}); err != nil {
						return err
					}
					if got := w.seesCopies(ctx, mine).Question(); got != want {
						w.Errorf("the holder asks %d: the question is %d, want %d", asks, got, want)
					}
				}
				if err := theirs.Copies().Tell(ctx, CopyReport{Asks: held.Token, Promoted: held.Token}); err != nil {
					return err
				}
				if got := w.seesCopies(ctx, mine).Question(); got != 0 {
					w.Errorf("it is promoted: the question is %d", got)
				}
				if _, err := held.Promotes(ctx, "b:1", false); err != nil {
					return err
				}
				if err := held.Release(ctx); err != nil {
					return err
				}
				if seen := w.seesCopies(ctx, mine); seen.Vacancy == 0 || seen.Vacancy == first.Vacancy || seen.Question() != seen.Vacancy || seen.Crumb || seen.Promoted.Token != held.Token || seen.Promoted.Source != (Source{"b", "b:1"}) || seen.Promoted.Live != nil {
					w.Errorf("free again: %+v after %+v", seen, first)
				}
				return nil
			})
			return nil
		})
	})
}

// Where an address moves with the primary, its name says nothing; and where nothing is known, nothing is the same.
func TestASourceIsKnownByItsNameOrItsAddress(t *testing.T) {
	for _, c := range []struct {
		a, b Source
		same bool
	}{
		{Source{"a", "x"}, Source{"a", "x"}, true},
		{Source{"a", "x"}, Source{"a", "y"}, true},
		{Source{"a", "x"}, Source{"b", "x"}, true},
		{Source{"a", "x"}, Source{"b", "y"}, false},
		{Source{}, Source{}, false},
		{Source{"a", ""}, Source{"b", ""}, false},
	} {
		if c.a.Is(c.b) != c.same || c.b.Is(c.a) != c.same {
			t.Errorf("%+v, %+v: want %v", c.a, c.b, c.same)
		}
	}
}

// A verdict counts for the claim that it was made for: if another node has held the lock since, the copies have to tell anew.
func TestAClaimAfterAnotherOneIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			before := w.seesCopies(ctx, c)
			w.claims("b", func(ctx context.Context, _ *Session, cl *Claim) error { return cl.Release(ctx) })
			o, err := c.Wait(ctx)
			try(err)
			if cl, err := c.Take(ctx, o.After(before.Claims), BreadCrumb{Tree: []byte(`{}`)}); cl != nil || err != nil {
				w.Errorf("%+v, %v", cl, err)
			}
			if cl, err := c.Take(ctx, o.After(w.seesCopies(ctx, c).Claims), BreadCrumb{Tree: []byte(`{}`)}); cl == nil || err != nil {
				w.Errorf("%+v, %v", cl, err)
			}
			return nil
		})
	})
}

// Nothing is promoted under a lock that is not ours any more.
func TestALostLockPromotesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.claims("a", func(ctx context.Context, s *Session, cl *Claim) error {
			try(s.ensure(ctx, []string{cl.paths.Copies()}))
			try(s.delete(ctx, cl.paths.Lock()))
			if _, err := cl.Promotes(ctx, "", false); !errors.Is(err, ErrLost) {
				w.Errorf("%v", err)
			}
			return nil
		})
	})
}

// A promotion goes on with the recorded live set, or else with all that are known, and with the node itself.
func TestAPromotionHasALiveSet(t *testing.T) {
	inWorld(t, func(w *world) {
		w.claims("a", func(ctx context.Context, s *Session, cl *Claim) error {
			w.seesCopies(ctx, &Candidate{s: s, paths: cl.paths}) // makes the folders
			try(s.ensure(ctx, []string{cl.paths.Known() + "/b", cl.paths.Known() + "/no name"}))
			for text, want := range map[string][]string{
				"": {"a", "b"}, `{"token":3,"live":["c"]}`: {"a", "c"}, `{"token":3}`: {"a", "b"}, "garbage": {"a", "b"}, `{"live":["c","x y"]}`: {"a", "b"},
			} {
				try(s.set(ctx, cl.paths.Copies(), []byte(text), -1))
				now, err := cl.Promotes(ctx, "x", true)
				if seen := w.seesCopies(ctx, &Candidate{s: s, paths: cl.paths}); err != nil || !slices.Equal(now.Live, want) || !slices.Equal(seen.Promoted.Live, want) {
					w.Errorf("%s: %+v, %v; recorded: %+v", text, now, err, seen.Promoted)
				}
			}
			return nil
		})
	})
}

// Only the node that is promoted changes the live set, and only as it has read it.
func TestTheLiveSetIsThePrimarys(t *testing.T) {
	inWorld(t, func(w *world) {
		w.claims("a", func(ctx context.Context, s *Session, cl *Claim) error {
			w.seesCopies(ctx, &Candidate{s: s, paths: cl.paths})
			if _, ours, err := cl.Live(ctx); ours || err != nil {
				w.Errorf("before the promotion: %v, %v", ours, err)
			}
			_, err := cl.Promotes(ctx, "x", true)
			try(err)
			early, ours, err := cl.Live(ctx)
			if !ours || err != nil || !slices.Equal(early.Live, []string{"a"}) {
				w.Errorf("%+v, %v, %v", early, ours, err)
			}
			try(cl.SetLive(ctx, early, []string{"a", "b"}))
			if err := cl.SetLive(ctx, early, []string{"a"}); !errors.Is(err, zk.ErrBadVersion) {
				w.Errorf("over what was read before: %v", err)
			}
			now, _, err := cl.Live(ctx)
			try(err)
			if now.Source != (Source{"a", "x"}) || !slices.Equal(now.Live, []string{"a", "b"}) {
				w.Errorf("%+v", now)
			}
			try(s.delete(ctx, cl.paths.Lock()))
			if err := cl.SetLive(ctx, now, nil); err == nil {
				w.Error("a node without the lock has changed it")
			}
			return nil
		})
	})
}

func TestAChangeOfTheLockEndsAWait(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			began, seen := time.Now(), w.seesCopies(ctx, c)
			if err := c.Copies().Wait(ctx, seen, time.Minute); err != nil || time.Since(began) < time.Minute {
				w.Errorf("%v, after %v", err, time.Since(began))
			}
			seen = w.seesCopies(ctx, c)
			o, err := c.Wait(ctx)
			try(err)
			if _, err := c.Take(ctx, o, BreadCrumb{Tree: []byte(`{}`)}); err != nil {
				return err
			}
			began = time.Now()
			if err := c.Copies().Wait(ctx, seen, time.Minute); err != nil || time.Since(began) >= time.Minute {
				w.Errorf("%v, after %v", err, time.Since(began))
			}
			return nil
		})
	})
}
