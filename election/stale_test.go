package election

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/election/jute"
)

func becomeActive(ctx context.Context, s *Session) error {
	cl, err := activate(ctx, s)
	if err == nil {
		err = cl.sign(ctx)
	}
	return err
}

func TestALockWhoseHolderIsNoMoreIsTakenThoughItsSessionLives(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		former, leave := w.desert(w.config("a"), becomeActive)
		defer leave()
		began := w.now()
		w.within("b", func(ctx context.Context, s *Session) error {
			go s.ClearStale(ctx)
			waiting, cancel := context.WithTimeout(ctx, 10*testTimeout)
			defer cancel()
			_, b, err := claim(waiting, s, Race)
			if err != nil {
				w.Errorf("b waits for ever: %v", err)
				return nil
			}
			w.twoTimeouts("the lock was taken", w.now()-began, testTimeout)
			if !slices.Contains(w.zk.Sessions(), former) {
				w.Error("the session did not live: that shows nothing")
			}
			time.Sleep(testTimeout)
			if there, err := exists(ctx, s, NodesDir("/understudy")+"/a"); there || err != nil {
				w.Errorf("the former supervisor's znode is there: %v %v", there, err)
			}
			if b.Previous == nil || b.Previous.Node != "a" {
				w.Errorf("the breadcrumb names %+v", b.Previous)
			} else if lives, err := b.PreviousLives(ctx); !lives || err != nil {
				w.Errorf("who waits by time does not add a session timeout: %v %v", lives, err)
			}
			if held := w.held(s); held != crumbName+" "+lockName {
				w.Errorf("there is %q", held)
			}
			v, err := s.read(ctx, p.Crumb())
			if !strings.Contains(string(v.data), `"tree":{"of":"a"}`) {
				w.Errorf("the breadcrumb says %s", v.data)
			}
			return errors.Join(err, b.Release(ctx))
		})
	})
}

func TestABreadcrumbThatOutlivedItsLockKeepsWhatOtherVersionsWrote(t *testing.T) {
	old := []byte(`{"node":"a","session":"0x1","session_timeout_ms":4000,"of_tomorrow":[1]}`)
	var all map[string]json.RawMessage
	if err := json.Unmarshal(outlived(old), &all); err != nil {
		t.Fatal(err)
	}
	if string(all["of_tomorrow"]) != "[1]" || string(all["outlived"]) != "true" || string(all["node"]) != `"a"` {
		t.Errorf("it says %s", all)
	}
}

func TestAQueueIsRidOfAStandbyWhoseSessionIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		_, leave := w.desert(w.config("a"), func(ctx context.Context, s *Session) error {
			c, _, err := s.NewCandidate(ctx, "svc", Queue)
			if err == nil {
				err = errors.Join(c.queue.reachHead(ctx), c.Prefer(ctx, 7), c.Members.Announce(ctx, Member{Role: "standby"}))
			}
			return err
		})
		defer leave()
		began := w.now()
		w.within("b", func(ctx context.Context, s *Session) error {
			go s.ClearStale(ctx)
			waiting, cancel := context.WithTimeout(ctx, 10*testTimeout)
			defer cancel()
			c, b, err := claim(waiting, s, Queue)
			if err != nil {
				w.Errorf("b waits for ever: %v", err)
				return nil
			}
			w.twoTimeouts("the lock was taken", w.now()-began, testTimeout)
			time.Sleep(testTick)
			for _, dir := range []string{c.paths.Preferred(), c.paths.Members()} {
				if names, err := s.children(ctx, dir); len(names) > 0 || err != nil {
					w.Errorf("in %s is %v %v", dir, names, err)
				}
			}
			return b.Release(ctx)
		})
	})
}

func TestANodeThatComesBackTakesThePlaceOfItsFormerSession(t *testing.T) {
	inWorld(t, func(w *world) {
		former, leave := w.desert(w.config("a"), becomeActive)
		defer leave()
		began := w.now()
		back := w.open("a", func(ctx context.Context, s *Session) error {
			w.twoTimeouts("the node was there again", w.now()-began, testTimeout)
			go s.ClearStale(ctx)
			_, a, err := claim(ctx, s, Race)
			if err != nil {
				return err
			}
			if took := w.now() - began; took > 3*testTimeout+testTick {
				w.Errorf("its former session's lock stood for %v", took)
			}
			return a.Release(ctx)
		})
		result := make(chan error, 1)
		go func() { result <- back() }()
		select {
		case err := <-result:
			if err != nil {
				w.Error(err)
			}
			if !slices.Contains(w.zk.Sessions(), former) {
				w.Error("the former session did not live: that shows nothing")
			}
		case <-time.After(10 * testTimeout):
			w.Error("it waits for ever")
			leave() // then its session ends
			<-result
		}
	})
}

func TestZnodesThatTheServersForgotToDeleteBlockNobody(t *testing.T) {
	inWorld(t, func(w *world) {
		ticket, _ := w.leave("a")
		if !w.zk.LeaveZnodes(ticket.Session) || !w.zk.Expire(ticket.Session) {
			w.Fatal("the session is over already")
		}
		w.byHand(NodesDir("/understudy") + "/a") // this one they did not forget
		began := w.now()
		w.within("b", func(ctx context.Context, s *Session) error {
			go s.ClearStale(ctx)
			waiting, cancel := context.WithTimeout(ctx, 10*testTimeout)
			defer cancel()
			_, b, err := claim(waiting, s, Race)
			if err != nil {
				w.Errorf("b waits for ever: %v", err)
				return nil
			}
			w.twoTimeouts("the lock was taken", w.now()-began, testTimeout)
			return b.Release(ctx)
		})
	})
}

// The holder's session is longer than ours: that counts, as told by its znode, or by its breadcrumb where that is gone.
func TestTheHoldersOwnTimeoutCounts(t *testing.T) {
	const long = 2 * testTimeout
	for _, gone := range []bool{false, true} {
		inWorld(t, func(w *world) {
			cfg := w.config("a")
			cfg.Timeout = long
			_, leave := w.desert(cfg, becomeActive)
			defer leave()
			if gone {
				w.byHand(NodesDir("/understudy") + "/a")
			}
			began := w.now()
			w.within("b", func(ctx context.Context, s *Session) error {
				go s.ClearStale(ctx)
				waiting, cancel := context.WithTimeout(ctx, 10*long)
				defer cancel()
				_, b, err := claim(waiting, s, Race)
				if err != nil {
					w.Errorf("b waits for ever: %v", err)
					return nil
				}
				w.twoTimeouts("the lock was taken", w.now()-began, long)
				return b.Release(ctx)
			})
		})
	}
}

// With failsafe both go on without an ensemble. When it is back, who held the lock has two session timeouts to come back itself.
func TestAHolderHasTimeToComeBackAfterAnOutage(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		holder := w.holds("a")
		w.within("b", func(ctx context.Context, s *Session) error {
			s.ExtendByPromises(w.now() + 20*testTimeout)
			defer clears(ctx, s)()
			time.Sleep(testTimeout)
			holder.unplug()
			time.Sleep(testTimeout + testTick) // a look falls between its last heartbeat and the outage
			w.zk.Down()
			time.Sleep(5 * testTimeout)
			w.zk.Up()
			s.dialer.kick()
			for { // until we are heard again
				time.Sleep(testTick / 10)
				if _, ok := s.steady.since(w.now(), testTimeout); ok {
					break
				}
			}
			time.Sleep(2*testTimeout - testTick)
			if there, err := exists(ctx, s, p.Lock()); !there || err != nil {
				w.Errorf("the lock is gone before its holder could come back: %v", err)
			}
			holder.away.Store(false)
			time.Sleep(5 * testTimeout)
			if there, err := exists(ctx, s, p.Lock()); !there || err != nil {
				w.Errorf("the lock is gone though its holder came back: %v", err)
			}
			return nil
		})
		holder.leave()
	})
}

// A znode that is deleted by hand tells nothing of the heartbeats that came before.
func TestHeartbeatsBeforeTheirZnodeWasDeletedCount(t *testing.T) {
	inWorld(t, func(w *world) {
		holder := w.holds("a")
		w.within("b", func(ctx context.Context, s *Session) error {
			defer clears(ctx, s)()
			silent := make(chan time.Duration, 1)
			go func() {
				time.Sleep(testTimeout * 9 / 10) // a look lies so far back
				holder.unplug()
				silent <- w.now()
				w.byHand(NodesDir("/understudy") + "/a")
			}()
			waiting, cancel := context.WithTimeout(ctx, 10*testTimeout)
			defer cancel()
			_, b, err := claim(waiting, s, Race)
			if err != nil {
				return err
			}
			if took := w.now() - <-silent; took < 2*testTimeout {
				w.Errorf("the lock was deleted %v after a heartbeat", took)
			}
			return b.Release(ctx)
		})
		holder.away.Store(false)
		holder.leave()
	})
}

// However many services wait for a holder, it is looked at once in a session timeout.
func TestLooksAreTakenPerHolderAndNotPerService(t *testing.T) {
	inWorld(t, func(w *world) {
		const services, looks = 50, 10
		leaving, ready := make(chan struct{}), make(chan struct{}, services)
		one := func(ctx context.Context, s *Session, service string) error {
			c, _, err := s.NewCandidate(ctx, service, Race)
			ready <- struct{}{}
			for err == nil {
				var o Opening
				if o, err = c.Wait(ctx); err == nil {
					if cl, _ := c.Take(ctx, o, BreadCrumb{}); cl != nil {
						break
					}
				}
			}
			<-leaving
			return err
		}
		all := func(ctx context.Context, s *Session) error {
			go s.ClearStale(ctx)
			errs := make(chan error, services)
			for i := range services {
				go func() { errs <- one(ctx, s, "svc"+strconv.Itoa(i)) }()
			}
			var err error
			for range services {
				err = errors.Join(err, <-errs)
			}
			return err
		}
		var waits []func() error
		for _, node := range []string{"a", "b"} {
			waits = append(waits, w.open(node, all))
			for range services {
				<-ready
			}
			time.Sleep(2 * testTimeout)
		}
		reads := func() (n int64) {
			for _, op := range []jute.Op{jute.OpGetData, jute.OpSync, jute.OpGetChildren2, jute.OpExists} {
				n += w.zk.Requests()[op]
			}
			return n
		}
		before := reads()
		time.Sleep(looks * testTimeout)
		if n, limit := reads()-before, int64(2*4*(looks+1)); n > limit { // by two nodes: a sync, the listing, and two znodes each
			w.Errorf("%d reads in %d session timeouts, %d would do", n, looks, limit)
		}
		close(leaving)
		for _, wait := range waits {
			if err := wait(); err != nil {
				w.Error(err)
			}
		}
	})
}
