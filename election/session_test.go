package election

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
)

// P3, for cuts at any moment: nothing may be alive any more when the server ends the session.
func TestLeaseEndsBeforeTheSessionDoes(t *testing.T) {
	for seed := range uint64(40) {
		inWorld(t, func(w *world) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			way := []zkfaults.Direction{zkfaults.Both, zkfaults.Inbound, zkfaults.Outbound}[rnd.IntN(3)]
			wait := w.open("a", func(ctx context.Context, s *Session) error {
				time.Sleep(time.Duration(rnd.Int64N(int64(5 * time.Second))))
				defer w.zk.Cut(zkfaults.Everyone, way)()
				cut := w.now()
				select {
				case <-s.Ended():
				case <-time.After(time.Minute):
					w.Fatalf("seed %d: the lease has not ended", seed)
				}
				if !slices.Contains(w.zk.Sessions(), s.ID()) {
					w.Errorf("seed %d: the session was over before the lease, %v after the cut", seed, w.now()-cut)
				}
				if late := w.now() - cut - testLease; late > 0 {
					w.Errorf("seed %d: the lease lasted %v too long", seed, late)
				}
				if ctx.Err() == nil {
					w.Errorf("seed %d: the serving goes on", seed)
				}
				return nil
			})
			if err := wait(); !errors.Is(err, ErrLeaseEnding) {
				w.Errorf("seed %d: ended by %v", seed, err)
			}
		})
	}
}

// A follower that lost its leader answers pings and reads for a long time: they must not count.
func TestAnsweredPingsAndReadsDoNotExtendTheLease(t *testing.T) {
	inWorld(t, func(w *world) {
		err := w.open("a", func(ctx context.Context, s *Session) error {
			if _, err := s.SetBacks(ctx); err != nil { // the first heartbeat, which is sent at once, is acknowledged
				return err
			}
			w.zk.LoseReply(zkfaults.Match{Op: jute.OpSetData, Count: zkfaults.Always})
			began := w.now()
			reads := 0
			for ctx.Err() == nil {
				if ok, err := exists(ctx, s, "/understudy"); ok && err == nil {
					reads++
				}
				time.Sleep(100 * time.Millisecond)
			}
			<-s.Ended()
			if lasted := w.now() - began; lasted > testLease {
				w.Errorf("the lease lasted %v without an acknowledged write", lasted)
			}
			if reads == 0 {
				w.Error("no read was answered: the test shows nothing")
			}
			return nil
		})()
		if !errors.Is(err, ErrLeaseEnding) {
			w.Errorf("ended by %v", err)
		}
	})
}

// P7.
func TestOutageShorterThanTheLeaseIsNotNoticed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			id := s.ID()
			for range 5 {
				time.Sleep(2 * time.Second)
				w.zk.Down()
				time.Sleep(time.Second)
				w.zk.Up()
				time.Sleep(2 * time.Second)
				w.zk.ElectLeader()
			}
			if ctx.Err() != nil || s.ID() != id {
				w.Errorf("the session did not survive: %v", context.Cause(ctx))
			}
			return nil
		})
	})
}

func TestSessionThatTheServerEndedIsOverAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		err := w.open("a", func(ctx context.Context, s *Session) error {
			w.zk.Expire(s.ID())
			began := w.now()
			<-s.Ended()
			if took := w.now() - began; took > testTimeout/10 {
				w.Errorf("noticed after %v", took)
			}
			return nil
		})()
		if !errors.Is(err, ErrExpired) {
			w.Errorf("ended by %v", err)
		}
	})
}

// After a bad end the old session is closed as soon as a server is there, so that nobody waits for it to expire: also that of a standby, which
// stops serving before its lease has ended.
func TestSessionThatEndedBadlyIsClosedOnReturn(t *testing.T) {
	for _, standby := range []bool{false, true} {
		inWorld(t, func(w *world) {
			var old int64
			err := w.open("a", func(ctx context.Context, s *Session) error {
				old = s.ID()
				w.zk.Down()
				over := s.Ended()
				if standby {
					over = ctx.Done()
				}
				<-over
				time.AfterFunc(10*time.Second, w.zk.Up)
				return nil
			})()
			if !errors.Is(err, ErrLeaseEnding) {
				w.Fatal(err)
			}
			if slices.Contains(w.zk.Sessions(), old) {
				w.Error("the old session is still there")
			}
		})
	}
}

// P2: when something may be alive, nobody closes the session.
func TestSessionIsNotClosedWhileSomethingMayBeAlive(t *testing.T) {
	inWorld(t, func(w *world) {
		alive := errors.New("alive")
		var old int64
		err := w.open("a", func(_ context.Context, s *Session) error {
			old = s.ID()
			return alive
		})()
		if !errors.Is(err, alive) {
			w.Fatal(err)
		}
		if !slices.Contains(w.zk.Sessions(), old) {
			w.Error("the session was closed")
		}
	})
}

func TestNodeNameInUseIsWaitedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		release := make(chan struct{})
		first := w.open("a", func(context.Context, *Session) error { <-release; return nil })
		time.Sleep(time.Second)
		entered := make(chan struct{})
		second := w.open("a", func(context.Context, *Session) error { close(entered); return nil })
		time.Sleep(10 * time.Second)
		select {
		case <-entered:
			w.Error("two supervisors of one name")
		default:
		}
		close(release)
		must.Report(w, errors.Join(first(), second()))
	})
}

// A session that waits to be registered has no lease that could end it, when ZooKeeper loses its data meanwhile.
func TestSessionThatIsNotRegisteredSurvivesALossOfData(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("operator", func(ctx context.Context, s *Session) error {
			if err := s.create(ctx, "/understudy/nodes/a", encode(Node{Node: "a"}), 0); err != nil { // nobody's, so that it stays
				return err
			}
			for range 20 { // so that the client sees more than the new data will have
				try(s.set(ctx, "/understudy/nodes/a", encode(Node{Node: "a"}), -1))
			}
			return nil
		})
		var tries atomic.Int32
		result := make(chan error, 1)
		go func() {
			e := New(w.config("a"))
			for {
				tries.Add(1)
				err := e.Open(w.Context(), func(context.Context, *Session) error { return nil })
				if !errors.Is(err, ErrExpired) {
					e.Wait()
					result <- err
					return
				}
			}
		}()
		time.Sleep(10 * time.Second)
		if tries.Load() != 1 {
			w.Errorf("gave up %d sessions that were answered", tries.Load()-1)
		}
		w.zk.Wipe()
		select {
		case err := <-result:
			must.Report(w, err)
		case <-time.After(time.Minute):
			w.Error("it hangs")
		}
	})
}
