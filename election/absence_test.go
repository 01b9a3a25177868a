package election

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
)

// lag is how long the servers take to agree.
const lag = 300 * time.Millisecond

// besideSlowServers runs f in a session at the leader of three servers. Once lose was called, their agreeing takes long, and the
// connection is lost before that: what was asked for is carried out, but is not seen yet when it is looked for.
func besideSlowServers(t *testing.T, f func(ctx context.Context, s *Session, lose func()) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := zkfaults.NewEnsemble(zkfaults.Config{TickTime: testTick}, zkfaults.EnsembleConfig{Size: 3})
		start := time.Now()
		var newest net.Conn
		cfg := Config{
			Servers: []string{"zk"}, Root: "/understudy", Lease: testLease, Node: Node{Node: "a", Host: "a"}, Logger: hclog.NewNullLogger(),
			Now: func() time.Duration { return time.Since(start) + time.Hour },
			Dial: func(context.Context, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go e.Server(0).ServeConn(theirs)
				newest = ours
				return ours, nil
			},
		}
		err := New(cfg).Open(t.Context(), func(ctx context.Context, s *Session) error {
			return f(ctx, s, func() {
				e.Slow(0, 1, lag)
				e.Slow(0, 2, lag)
				time.AfterFunc(lag/10, func() { _ = newest.Close() })
			})
		})
		must.Report(t, err)
		must.Report(t, e.Close())
	})
}

// named lists what is there of a node, or of a session.
func named(ctx context.Context, s *Session, dir, mark string) (names []string, err error) {
	if err := s.sync(ctx, dir); err != nil {
		return nil, err
	}
	all, err := s.children(ctx, dir)
	for _, n := range all {
		if strings.Contains(n, mark) {
			names = append(names, n)
		}
	}
	return names, err
}

// Its creation was not answered, and is not seen when the queue is read.
func TestNoSecondPlaceIsTakenBeforeTheServersAgree(t *testing.T) {
	besideSlowServers(t, func(ctx context.Context, s *Session, lose func()) error {
		c, _, err := s.NewCandidate(ctx, "svc", Queue)
		if err != nil {
			return err
		}
		lose()
		if _, err := c.Wait(ctx); err != nil {
			return err
		}
		places, err := named(ctx, s, c.paths.Queue(), placeMark)
		if len(places) != 1 || err != nil {
			return fmt.Errorf("places: %v %w", places, err)
		}
		queue, err := s.getStat(ctx, c.paths.Queue())
		if queue.Cversion != 1 {
			return fmt.Errorf("places came and went: %d changes, %w", queue.Cversion, err)
		}
		return err
	})
}

// What is there of ours besides the place that is used is removed, and all of it when the queue is left.
func TestEveryPlaceOfOursIsRemoved(t *testing.T) {
	for _, leave := range []bool{false, true} {
		inWorld(t, func(w *world) {
			w.within("a", func(ctx context.Context, s *Session) error {
				first := stand(ctx, s, Queue)
				if _, err := first.Wait(ctx); err != nil {
					return err
				}
				for _, rank := range []string{"", "-p7", ""} { // as a previous candidate may have left them
					guid, _, _ := strings.Cut(first.queue.place[len(first.paths.Queue())+1:], placeMark)
					try(s.create(ctx, first.paths.Queue()+"/"+guid+rank+placeMark, nil, 3))
				}
				c := stand(ctx, s, Queue)
				want := 1
				if leave {
					want = 0
					try(c.Withdraw(ctx))
				} else {
					_, err := c.Wait(ctx)
					try(err)
				}
				if places, err := named(ctx, s, c.paths.Queue(), placeMark); len(places) != want || err != nil {
					w.Errorf("places: %v %v", places, err)
				}
				return nil
			})
		})
	}
}

// A place that is not seen yet is taken back all the same: nobody waits behind who rests.
func TestAPlaceIsTakenBackBeforeTheServersAgree(t *testing.T) {
	besideSlowServers(t, func(ctx context.Context, s *Session, lose func()) error {
		c, _, err := s.NewCandidate(ctx, "svc", Queue)
		if err != nil {
			return err
		}
		lose()
		if _, err := c.queue.predecessor(ctx); !unknown(err) {
			return fmt.Errorf("it was answered: %w", err)
		}
		if err := c.Withdraw(ctx); err != nil {
			return err
		}
		time.Sleep(2 * lag)
		if places, err := named(ctx, s, c.paths.Queue(), placeMark); len(places) != 0 || err != nil {
			return fmt.Errorf("places: %v %w", places, err)
		}
		return nil
	})
}

func TestAPreferenceIsTakenBackWhoseTellingWasNotAnswered(t *testing.T) {
	besideSlowServers(t, func(ctx context.Context, s *Session, lose func()) error {
		c, _, err := s.NewCandidate(ctx, "svc", Race)
		if err != nil {
			return err
		}
		lose()
		if err := c.preference.set(ctx, 5); !unknown(err) {
			return fmt.Errorf("it was answered: %w", err)
		}
		if err := new(pacing).wait(ctx, s.client, errUnanswered); err != nil {
			return err
		}
		if err := c.Prefer(ctx, 0); err != nil {
			return err
		}
		if left, err := named(ctx, s, c.paths.Preferred(), "a"); len(left) != 0 || err != nil {
			return fmt.Errorf("left: %v %w", left, err)
		}
		return nil
	})
}

// Whose lock it is that may be ours is believed of a server that has caught up: its absence too.
func TestALockWhoseTakingWasNotAnsweredIsLookedForWithASync(t *testing.T) {
	for _, look := range []func(context.Context, *Candidate) error{
		func(ctx context.Context, c *Candidate) error { return c.Retreat(ctx) },
		func(ctx context.Context, c *Candidate) error {
			_, err := c.Wait(ctx)
			return err
		},
	} {
		inWorld(t, func(w *world) {
			w.within("a", func(ctx context.Context, s *Session) error {
				c, err := w.unanswered(ctx, s, Race)
				try(err)
				w.byHand(c.paths.Lock(), c.paths.Crumb())
				before := w.zk.Requests()[jute.OpSync]
				if err := look(ctx, c); err != nil || c.MayHoldLock() {
					return fmt.Errorf("unsure: %v, %w", c.MayHoldLock(), err)
				}
				if n := w.zk.Requests()[jute.OpSync] - before; n != 1 {
					w.Errorf("%d syncs", n)
				}
				return nil
			})
		})
	}
}

// Who stood before all of a service was deleted does not know who was active then: he may not take the lock at once.
func TestNobodyTakesTheLockOfAServiceThatWasMadeAnewSinceHeStood(t *testing.T) {
	for _, answered := range []bool{true, false} {
		inWorld(t, func(w *world) {
			w.within("a", func(ctx context.Context, s *Session) error {
				c, before, err := s.NewCandidate(ctx, "svc", Race)
				try(err)
				o, err := c.Wait(ctx)
				try(err)
				w.deleteAll()
				w.asOperator(func(ctx context.Context, s *Session) error {
					_, _, err := s.NewCandidate(ctx, "svc", Race)
					return err
				})
				if !answered {
					w.zk.CloseAfter(zkfaults.Match{Op: jute.OpMulti, Path: lockName})
				}
				cl, err := c.Take(ctx, o, BreadCrumb{Tree: []byte(`{}`)})
				for err == nil && cl == nil {
					if o, err = c.Wait(ctx); err == nil {
						cl, err = c.Take(ctx, o, BreadCrumb{Tree: []byte(`{}`)})
					}
				}
				if cl != nil || err == nil {
					w.Errorf("claimed: %+v, %v", cl, err)
				}
				if held := w.held(s); held != "" {
					w.Errorf("left: %q", held)
				}
				if _, after, err := s.NewCandidate(ctx, "svc", Race); after == before || err != nil {
					w.Errorf("born %+v, then %+v: %v", before, after, err)
				}
				return nil
			})
		})
	}
}

// A server that is behind may not show yet what it refuses to make again.
func TestAPreferenceThatIsThereThoughItIsNotSeenIsLookedForWithASync(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			before := w.zk.Requests()[jute.OpSync]
			w.zk.Refuse(createIn("preferred"), jute.NodeExists)
			try(c.Prefer(ctx, 5))
			if n := w.zk.Requests()[jute.OpSync] - before; n != 1 {
				w.Errorf("%d syncs", n)
			}
			return nil
		})
	})
}

// Whoever stands makes all anew that is missing, and whoever stood is told that it is not what it was.
func TestAServiceThatWasDeletedIsMadeAnewByWhoStands(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			c, before, err := s.NewCandidate(ctx, "svc", Race)
			try(err)
			told, ended := make(chan struct{}, 9), make(chan error, 1)
			go func() { ended <- c.Control.Watch(ctx, func(Intents) { told <- struct{}{} }) }()
			<-told
			w.deleteAll(ServicesDir("/understudy"))
			if err := <-ended; !errors.Is(err, ErrDeleted) {
				w.Errorf("the wishes end with %v", err)
			}
			again, after, err := s.NewCandidate(ctx, "svc", Race)
			if err != nil || after == before {
				return fmt.Errorf("born %+v, then %+v: %w", before, after, err)
			}
			if err := c.Control.Watch(ctx, func(Intents) {}); !errors.Is(err, ErrDeleted) { // of others, which look the same
				w.Errorf("the wishes of others are told: %v", err)
			}
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := again.Control.Watch(bounded, func(Intents) {}); !errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("the wishes end with %v", err)
			}
			return nil
		})
	})
}
