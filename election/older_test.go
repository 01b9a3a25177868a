package election

import (
	"context"
	"errors"
	"testing"
	"time"

	"understudy/election/zkmem"
)

// P1: a session that is in an older copy of ZooKeeper's data goes on there, because an ensemble's new leader numbers its changes higher than
// all that were lost. It has seen a claim that is in that copy no more, and takes no lock.
func TestASessionThatGoesOnInAnOlderCopyTakesNothing(t *testing.T) {
	for name, released := range map[string]bool{"it waits for the lock": false, "it has found the lock free": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var copied *zkmem.Backup
				restore := func() {
					w.zk.Rewind(copied)
					w.zk.ElectLeader()
				}
				w.within("standby", func(ctx context.Context, s *Session) error {
					c, _, err := s.NewCandidate(ctx, "svc", Race)
					if err != nil {
						return err
					}
					copied = w.zk.Backup()
					over := make(chan struct{})
					active := w.open("active", func(ctx context.Context, s *Session) error {
						_, claim, err := claim(ctx, s, Race)
						if err != nil {
							return err
						}
						if !released {
							<-over
							return nil
						}
						time.Sleep(time.Second)
						return claim.Release(ctx)
					})
					time.Sleep(time.Second / 2)
					if !released {
						time.AfterFunc(time.Second, restore)
					}
					o, err := c.Wait(ctx)
					if released && err == nil {
						restore()
						time.Sleep(time.Second) // it is connected again
						_, err = c.Take(ctx, o, BreadCrumb{})
					}
					if !errors.Is(err, ErrOlder) {
						w.Errorf("%+v, %v", o, err)
					}
					if lock, err := exists(ctx, s, c.Paths().Lock()); lock || err != nil {
						w.Errorf("there is a lock: %v, %v", lock, err)
					}
					close(over)
					_ = active() // its session is gone
					time.Sleep(time.Second)
					return nil
				})
			})
		})
	}
}

// So does one whose own znode is in the copy as it was: no heartbeat came between the copy and its return. Only the claims tell.
func TestACopyOfAMomentAgoIsKnownByItsClaims(t *testing.T) {
	for name, found := range map[string]bool{"it waits for the lock": false, "it has found the lock free": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.within("standby", func(ctx context.Context, s *Session) error {
					c, _, err := s.NewCandidate(ctx, "svc", Race)
					if err != nil {
						return err
					}
					time.Sleep(s.Timeout()/12 + s.Timeout()/100) // a heartbeat has just been sent
					copied := w.zk.Backup()
					held, over := make(chan struct{}), make(chan struct{})
					active := w.open("active", func(ctx context.Context, s *Session) error {
						_, mine, err := claim(ctx, s, Race)
						if err == nil && found {
							err = mine.Release(ctx)
						}
						close(held)
						<-over
						return err
					})
					restore := func() {
						w.zk.Rewind(copied)
						w.zk.ElectLeader()
					}
					if <-held; !found {
						time.AfterFunc(s.Timeout()/50, restore) // it has seen the lock by then
					}
					o, err := c.Wait(ctx)
					if found && err == nil {
						restore()
						time.Sleep(time.Second) // it is connected again
						_, err = c.Take(ctx, o, BreadCrumb{})
					}
					if n, unseen := s.SetBacks(ctx); !errors.Is(err, ErrOlder) || n != 0 || unseen != nil {
						w.Errorf("%+v, %v; set back %d times, %v", o, err, n, unseen)
					}
					close(over)
					_ = active() // its session is gone
					return nil
				})
			})
		})
	}
}

// So does one that has held the lock when the copy was made, and has looked at no lock since, as a place in a queue is enough.
func TestALockOfAnOlderCopyIsNotTakenForOurs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("standby", func(ctx context.Context, s *Session) error {
			c, mine, err := claim(ctx, s, Queue)
			if err != nil {
				return err
			}
			time.Sleep(2 * s.Timeout()) // heartbeats were acknowledged
			copied := w.zk.Backup()
			if err := mine.Release(ctx); err != nil {
				return err
			}
			over, held := make(chan struct{}), make(chan struct{})
			active := w.open("active", func(ctx context.Context, s *Session) error {
				_, _, err := claim(ctx, s, Queue)
				close(held)
				<-over
				return err
			})
			<-held
			time.Sleep(2 * s.Timeout())
			w.zk.Rewind(copied)
			w.zk.ElectLeader()
			o, err := c.Wait(ctx)
			if err == nil {
				var again *Claim
				again, err = c.Take(ctx, o, BreadCrumb{})
				if again != nil {
					w.Errorf("taken with the token %d again", again.Token)
				}
			}
			if !errors.Is(err, ErrOlder) {
				w.Error(err)
			}
			if n, err := s.SetBacks(ctx); n != 1 || err != nil {
				w.Errorf("set back %d times: %v", n, err)
			}
			close(over)
			_ = active() // its session is gone
			return nil
		})
	})
}

// So does a node whose session is younger than the copy, although nothing of it is there to be compared; not if it had given the session up.
func TestACopyThatHasNotThisSessionIsKnownByItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		before   func(*Session)
		setBacks int64
	}{
		"by its end":                   {func(*Session) {}, 1},
		"its guardians have closed it": {func(s *Session) { s.Stop(errors.New("the guardians ended the lease")) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.asOperator(func(context.Context, *Session) error { return nil }) // the folders are in the copy
				copied := w.zk.Backup()
				e := New(w.config("standby"))
				defer e.Wait()
				err := e.Open(w.Context(), func(_ context.Context, s *Session) error {
					time.Sleep(s.Timeout())
					c.before(s)
					w.zk.Rewind(copied)
					w.zk.ElectLeader()
					<-s.Ended()
					return nil
				})
				if !errors.Is(err, ErrExpired) {
					w.Fatal(err)
				}
				err = e.Open(w.Context(), func(ctx context.Context, s *Session) error {
					if n, err := s.SetBacks(ctx); n != c.setBacks || err != nil {
						w.Errorf("set back %d times: %v", n, err)
					}
					return nil
				})
				if err != nil {
					w.Fatal(err)
				}
			})
		})
	}
}

// A claim that is lost with the data has a number that another node's claim in the copy may have, too: neither a release nor a note of the
// one changes what belongs to the other.
func TestALostClaimChangesNothingInAnOlderCopy(t *testing.T) {
	for name, act := range map[string]func(context.Context, *Claim) error{
		"release":   func(ctx context.Context, c *Claim) error { return c.Release(ctx) },
		"promotion": func(ctx context.Context, c *Claim) error { return c.Promotes(ctx, "here") },
		"token":     func(ctx context.Context, c *Claim) error { c.crumb.Token = 0; return c.writeToken(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.within("lost", func(ctx context.Context, s *Session) error {
					if _, _, err := s.NewCandidate(ctx, "svc", Race); err != nil {
						return err
					}
					if err := s.create(ctx, Paths{"/understudy", "svc"}.Copies(), []byte("{}"), 0); err != nil {
						return err
					}
					copied := w.zk.Backup()
					_, lost, err := claim(ctx, s, Race)
					if err != nil {
						return err
					}
					w.zk.Rewind(copied)
					w.zk.ElectLeader()
					var before, after []view
					w.claims("other", func(ctx context.Context, o *Session, c *Claim) (err error) {
						if c.number != lost.number {
							w.Fatalf("its claim has the number %d, and the lost one had %d", c.number, lost.number)
						}
						if before, err = o.all(ctx, c.paths); err != nil {
							return err
						}
						if err := act(ctx, lost); err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrCrumbChanged) {
							return err
						}
						after, err = o.all(ctx, c.paths)
						return err
					})
					for i := range before {
						if before[i].exists != after[i].exists || before[i].stat.Mzxid != after[i].stat.Mzxid {
							w.Errorf("lock, breadcrumb or promotion %d: it was %+v, and is %+v", i, before[i], after[i])
						}
					}
					return nil
				})
			})
		})
	}
}

// all reads the lock, the breadcrumb, and the newest promotion.
func (s *Session) all(ctx context.Context, p Paths) (all []view, err error) {
	for _, path := range []string{p.Lock(), p.Crumb(), p.Copies()} {
		v, err := s.get(ctx, path)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// A candidate waits for the first heartbeat of a connection: one is sent as soon as that begins, also where an earlier one was on its way.
func TestANewConnectionHoldsUpNoCandidate(t *testing.T) {
	inWorld(t, func(w *world) {
		left := w.carriedOver("a")
		err := w.resume("a", left.Session, func(ctx context.Context, s *Session) error {
			began := time.Now()
			n, err := s.SetBacks(ctx)
			if took := time.Since(began); n != 0 || took > s.Timeout()/50 {
				w.Errorf("set back %d times, held up for %v of %v", n, took, s.Timeout())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// So does a candidate that comes when the copy's znodes have changed: only claims are told by the folder's own change.
func TestAnOlderCopyIsKnownByItsNewestClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.asOperator(func(ctx context.Context, s *Session) error {
			_, _, err := s.NewCandidate(ctx, "svc", Race)
			return err
		})
		copied, token := w.zk.Backup(), int64(0)
		w.claims("active", func(_ context.Context, _ *Session, c *Claim) error {
			token = c.Token
			return nil
		})
		w.zk.Rewind(copied)
		w.zk.ElectLeader()
		w.asOperator(func(ctx context.Context, s *Session) error { // as the end of a session of the copy does
			return errors.Join(s.create(ctx, p.Lock(), nil, 0), s.delete(ctx, p.Lock()))
		})
		w.within("late", func(ctx context.Context, s *Session) error {
			c, _, err := s.NewCandidate(ctx, "svc", Race)
			if err == nil && (c.Newest >= token || s.Newest() <= token) {
				w.Errorf("the newest claim is %d, the newest change %d, and %d is lost", c.Newest, s.Newest(), token)
			}
			return err
		})
	})
}
