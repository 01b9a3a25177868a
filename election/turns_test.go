package election

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"understudy/election/jute"
)

// slowConn takes a while for each request.
type slowConn struct {
	net.Conn
	each time.Duration
}

func (c slowConn) Write(p []byte) (int, error) {
	time.Sleep(c.each)
	return c.Conn.Write(p)
}

// A supervisor of a thousand services has more to ask than ZooKeeper answers in a lease: its heartbeat does not wait for that.
func TestManyRequestsDoNotDelayTheHeartbeat(t *testing.T) {
	const (
		services = 3000
		requests = 4
		each     = time.Millisecond
	)
	if services*each < testLease {
		t.Fatal("they fit into a lease")
	}
	inWorld(t, func(w *world) {
		cfg := w.config("a")
		cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := w.dial(ctx, address)
			return slowConn{conn, each}, err
		}
		e := New(cfg)
		err := e.Open(w.Context(), func(ctx context.Context, s *Session) error {
			var wg sync.WaitGroup
			for range services {
				wg.Go(func() {
					for range requests {
						if _, err := s.get(InTurn(ctx), "/understudy"); err != nil && s.Over() == nil {
							w.Errorf("after %v: %v", w.now()-time.Hour, err)
						}
					}
				})
			}
			wg.Wait()
			return s.Over()
		})
		e.Wait()
		if took, least := w.now()-time.Hour, services*requests*each; err != nil || took < least || took > 2*least {
			w.Errorf("all is answered after %v: %v", took, err)
		}
	})
}

// busy takes all turns.
func (s *Session) busy() (over func()) {
	for range mostInTurn {
		s.turns <- struct{}{}
	}
	return func() {
		for range mostInTurn {
			<-s.turns
		}
	}
}

// A call that is given up without a connection is sent in the next one all the same: it has its turn until then.
func TestWhatIsGivenUpHasItsTurnUntilItIsSent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.asOperator(func(ctx context.Context, s *Session) error {
			s.ExtendByPromises(w.now() + time.Hour)
			w.zk.Down()
			asking, enough := context.WithCancel(ctx)
			var wg sync.WaitGroup
			for range 2 * mostInTurn {
				wg.Go(func() {
					for asking.Err() == nil {
						_, _ = s.exists(InTurn(asking), "/understudy")
					}
				})
			}
			time.Sleep(time.Minute)
			enough()
			wg.Wait()
			before := w.zk.Requests()[jute.OpExists]
			w.zk.Up()
			time.Sleep(testTimeout)
			if sent := w.zk.Requests()[jute.OpExists] - before; sent > mostInTurn {
				w.Errorf("%d are sent that nobody waits for", sent)
			}
			return s.Over()
		})
	})
}

// What has begun is done to its end while that takes no wait.
func TestAWaitForATurnEndsWithWhoeverAskedForIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.asOperator(func(ctx context.Context, s *Session) error {
			asked, enough := context.WithCancel(ctx)
			enough()
			anyway := context.WithoutCancel(InTurn(asked))
			for name, busy := range map[string]bool{"a turn is free": false, "there is none": true} {
				over := func() {}
				if busy {
					over = s.busy()
				}
				if _, err := s.get(anyway, "/understudy"); (err != nil) != busy || busy && !errors.Is(err, context.Canceled) {
					w.Errorf("%s: %v", name, err)
				}
				over()
			}
			return nil
		})
	})
}

// Where there are many services each has these calls at the same time.
func TestWhatManyServicesDoWaitsForItsTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.asOperator(func(ctx context.Context, s *Session) error {
			c := stand(ctx, s, Race)
			for _, call := range []struct {
				name string
				do   func(ctx context.Context) error
			}{
				{"stand", func(ctx context.Context) error { _, _, err := s.NewCandidate(InTurn(ctx), "another", Race); return err }},
				{"wait for the lock", func(ctx context.Context) error { _, err := c.Wait(ctx); return err }},
				{"announce", func(ctx context.Context) error { return c.Members.Announce(ctx, Member{}) }},
				{"watch the others", func(ctx context.Context) error {
					return c.Members.Watch(ctx, func([]Peer) { w.Error("told of the others") })
				}},
				{"watch the intents", func(ctx context.Context) error {
					return c.Control.Watch(ctx, func(Intents) { w.Error("told of intents") })
				}},
				{"take the lock", func(ctx context.Context) error { _, err := c.Take(ctx, Opening{clear: true}, BreadCrumb{}); return err }}, // it may be ours then
			} {
				over := s.busy()
				bounded, cancel := context.WithTimeout(ctx, time.Second)
				if err := call.do(bounded); !errors.Is(err, context.DeadlineExceeded) {
					w.Errorf("%s: %v", call.name, err)
				}
				cancel()
				over()
			}
			return nil
		})
	})
}

// P1: a node learns that its lock is gone while its lease goes on, and P5: a breadcrumb has what it has to say, however busy the session is.
// P6: so is a lock that is given back.
func TestWhatMustNotWaitWaitsForNoTurn(t *testing.T) {
	const soon = 100 * time.Millisecond
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, s *Session, a *Claim) error {
			defer s.busy()()
			lost := make(chan error, 1)
			go func() { lost <- a.Watch(ctx) }()
			bounded, cancel := context.WithTimeout(ctx, soon)
			defer cancel()
			if names, err := (&Crumb{s, a.paths}).NoteLeftover(bounded, a.crumb.Tree, Leftover{Pid: 1}); !names || err != nil {
				w.Errorf("the breadcrumb says what remains: %v, %v", names, err)
			}
			if _, _, err := (&History{s, a.paths.History()}).Record(bounded, Activation{}, "", Ending{}); err != nil { // a term's end waits for it
				w.Errorf("the history is written: %v", err)
			}
			w.byHand(a.paths.Lock())
			time.Sleep(soon)
			select {
			case err := <-lost:
				if !errors.Is(err, ErrLost) {
					w.Errorf("the lock is lost: %v", err)
				}
			default:
				w.Error("it does not know that its lock is gone")
			}
			return nil
		})
		w.byHand((&Paths{"/understudy", "svc"}).Crumb())
		w.asOperator(func(ctx context.Context, s *Session) error { // the lock may be ours, and all others wait for it
			c, err := w.unanswered(ctx, s, Race)
			try(err)
			defer s.busy()()
			bounded, cancel := context.WithTimeout(ctx, soon)
			defer cancel()
			o, err := c.Wait(bounded)
			if err != nil || !o.Ours() {
				w.Errorf("whether the lock is ours: %v, %v", o.Ours(), err)
			}
			claim, err := c.Take(bounded, o, BreadCrumb{})
			if err == nil && claim != nil {
				err = claim.Release(bounded)
			}
			return err
		})
		w.asOperator(func(ctx context.Context, s *Session) error {
			c, err := w.unanswered(ctx, s, Race)
			try(err)
			defer s.busy()()
			bounded, cancel := context.WithTimeout(ctx, soon)
			defer cancel()
			return c.Retreat(bounded)
		})
		w.activates("b", func(ctx context.Context, s *Session, b *Claim) error {
			defer s.busy()()
			bounded, cancel := context.WithTimeout(ctx, soon)
			defer cancel()
			return b.Release(bounded)
		})
	})
}
