package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
)

// P1: a session that is in an older copy of ZooKeeper's data goes on there, because an ensemble's new leader numbers its changes higher than
// all that were lost. It has seen a claim that is in that copy no more, and takes no lock.
func TestASessionThatGoesOnInAnOlderCopyTakesNothing(t *testing.T) {
	for name, released := range map[string]bool{"it waits for the lock": false, "it has found the lock free": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var copied *zkfaults.Backup
				restore := func() {
					w.zk.Rewind(copied)
					w.zk.ElectLeader()
				}
				w.within("standby", func(ctx context.Context, s *Session) error {
					c := stand(ctx, s, Race)
					copied = w.zk.Backup()
					over := make(chan struct{})
					active := w.open("active", func(ctx context.Context, s *Session) error {
						_, claim := claimed(ctx, s, Race)
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
						var taken *Claim
						if taken, err = c.Take(ctx, o, BreadCrumb{}); taken == nil && err == nil { // what it had seen is not there any more
							o, err = c.Wait(ctx)
						}
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
					c := stand(ctx, s, Race)
					time.Sleep(s.LeaseLength()/12 + s.LeaseLength()/100) // a heartbeat has just been sent
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
						time.AfterFunc(s.LeaseLength()/50, restore) // it has seen the lock by then
					}
					o, err := c.Wait(ctx)
					if found && err == nil {
						restore()
						time.Sleep(time.Second) // it is connected again
						var taken *Claim
						if taken, err = c.Take(ctx, o, BreadCrumb{}); taken == nil && err == nil { // what it had seen is not there any more
							o, err = c.Wait(ctx)
						}
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
			c, mine := claimed(ctx, s, Queue)
			time.Sleep(2 * s.LeaseLength()) // heartbeats were acknowledged
			copied := w.zk.Backup()
			try(mine.Release(ctx))
			over, held := make(chan struct{}), make(chan struct{})
			var lost int64
			active := w.open("active", func(ctx context.Context, s *Session) error {
				_, c, err := claim(ctx, s, Queue)
				if c != nil {
					lost = c.Token
				}
				close(held)
				<-over
				return err
			})
			<-held
			time.Sleep(2 * s.LeaseLength())
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
			// P1: a new candidate gives the lock of the copy back first.
			if _, again := claimed(ctx, s, Queue); again.Token <= lost {
				w.Errorf("taken with the token %d after %d", again.Token, lost)
			}
			close(over)
			_ = active() // its session is gone
			return nil
		})
	})
}

// So does a node whose session is younger than the copy, although nothing of it is there to be compared; not if it had given the session up.
func TestACopyThatHasNotThisSessionIsKnownByItsEnd(t *testing.T) {
	failed := errors.New("a process cannot be killed")
	closes := func(_ context.Context, _ *world, s *Session) { s.Stop(errors.New("the guardians ended the lease")) }
	unheard := func(ctx context.Context, w *world, _ *Session) {
		defer w.zk.Cut(zkfaults.Everyone, zkfaults.Both)()
		<-ctx.Done()
	}
	for name, c := range map[string]struct {
		before   func(context.Context, *world, *Session)
		elect    bool // a leader, which numbers its changes higher than all that were lost
		result   error
		setBacks int64
	}{
		"by its end":                                      {func(context.Context, *world, *Session) {}, true, nil, 1},
		"although what runs stays":                        {func(context.Context, *world, *Session) {}, true, failed, 1},
		"its lease was about to end":                      {unheard, true, nil, 1},
		"its guardians have closed it":                    {closes, true, nil, 0},
		"its guardians have closed it, the next is older": {closes, false, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.asOperator(func(context.Context, *Session) error { return nil }) // the folders are in the copy
				copied := w.zk.Backup()
				e := New(w.config("standby"))
				defer e.Wait()
				err := e.Open(w.Context(), func(ctx context.Context, s *Session) error {
					if !c.elect { // it is in the copy
						copied = w.zk.Backup()
					}
					time.Sleep(s.LeaseLength())
					c.before(ctx, w, s)
					w.zk.Rewind(copied)
					if c.elect {
						w.zk.ElectLeader()
					}
					w.zk.Up()
					<-s.Ended()
					return c.result
				})
				if want := cmp.Or(c.result, ErrExpired); !errors.Is(err, want) && (c.elect || !errors.Is(err, ErrLeaseEnding)) { // a server that is behind hangs up
					w.Errorf("%v, want %v", err, want)
				}
				e.Wait() // its znode is gone
				err = e.Open(w.Context(), func(ctx context.Context, s *Session) error {
					if n, err := s.SetBacks(ctx); n != c.setBacks || err != nil {
						w.Errorf("set back %d times: %v", n, err)
					}
					return nil
				})
				must.Report(w, err)
			})
		})
	}
}

// A claim that is lost with the data has a number that another node's claim in the copy may have, too: no transaction of the one changes what
// belongs to the other, not even one that was begun while there was no connection.
func TestALostClaimChangesNothingInAnOlderCopy(t *testing.T) {
	for name, act := range map[string]func(context.Context, *Claim) error{
		"release": func(ctx context.Context, c *Claim) error { return c.Release(ctx) },
		"promotion": func(ctx context.Context, c *Claim) error {
			return func() error { _, err := c.Promotes(ctx, "here", false); return err }()
		},
		"token": func(ctx context.Context, c *Claim) error { c.crumb.Token = 0; return c.writeToken(ctx) },
	} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, before the reconnect: %v", name, early), func(t *testing.T) {
				inWorld(t, func(w *world) { w.losesClaim(early, act) })
			})
		}
	}
}

func (w *world) losesClaim(early bool, act func(context.Context, *Claim) error) {
	var cut atomic.Bool
	cfg := w.config("lost")
	cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		if cut.Load() {
			return nil, errors.New("no route")
		}
		return w.dial(ctx, address)
	}
	e := New(cfg)
	defer e.Wait()
	_ = e.Open(w.Context(), func(ctx context.Context, s *Session) error { // the session ends where the lock is gone
		if _, _, err := s.NewCandidate(ctx, "svc", Race); err != nil {
			return err
		}
		if err := s.create(ctx, Paths{"/understudy", "svc"}.Copies(), []byte("{}"), 0); err != nil {
			return err
		}
		copied := w.zk.Backup()
		_, lost, err := claim(ctx, s, Race)
		if err != nil {
			w.Error(err)
			return err
		}
		resumed := s.Resumed()
		cut.Store(true)
		w.zk.Rewind(copied)
		w.zk.ElectLeader()
		time.Sleep(50 * time.Millisecond) // the client has noticed
		did := make(chan error, 1)
		if early {
			go func() { did <- act(ctx, lost) }()
		}
		var before, after []view
		w.claims("other", func(ctx context.Context, o *Session, c *Claim) (err error) {
			if dir, err := o.getStat(ctx, c.paths.Dir()); err != nil || dir.Version != 1 {
				w.Errorf("it is claim %d, and was lost as such: %v", dir.Version, err)
			}
			if before, err = o.all(ctx, c.paths); err != nil {
				return err
			}
			cut.Store(false)
			<-resumed
			if !early {
				did <- act(ctx, lost)
			}
			<-did // its error matters less than what it has done
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
}

// A breadcrumb that somebody has put beside our lock was never fenced, though it has the version of the one that was.
func TestABreadcrumbThatCameBesideOurLockIsNotWrittenOver(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.claims("previous", func(context.Context, *Session, *Claim) error { return nil })
		w.claims("a", func(ctx context.Context, s *Session, c *Claim) error {
			if c.Previous == nil || c.version != 0 {
				w.Errorf("to be fenced: %+v, version %d", c.Previous, c.version)
			}
			w.asOperator(func(ctx context.Context, o *Session) error {
				look, err := o.names(ctx, p)
				if err != nil {
					return err
				}
				_, err = o.multi(ctx, &zk.DeleteRequest{Path: p.Crumb(), Version: -1}, remove(look.Records[0]),
					&zk.CreateRequest{Path: p.Crumb(), Data: encode(BreadCrumb{Node: "x", Session: "0x1"}), Acl: s.acl})
				return err
			})
			if err := c.Inscribe(ctx); !errors.Is(err, ErrCrumbChanged) {
				w.Error(err)
			}
			v, err := s.get(ctx, p.Crumb())
			if b, _ := ReadBreadCrumb(v.data); b.Node != "x" {
				w.Errorf("it is written over: %s", v.data)
			}
			return err
		})
	})
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
			if took := time.Since(began); n != 0 || took > s.LeaseLength()/50 {
				w.Errorf("set back %d times, held up for %v of %v", n, took, s.LeaseLength())
			}
			return err
		})
		must.OK(t, err)
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
