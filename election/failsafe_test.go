package election

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
)

// P1: whoever counts on a promise stops before whoever gave it may start, though one clock goes too slow and the other too fast,
// and there is time left to kill in. And there is time to ask in, between the doubt and the time to stop.
func TestPromiseOutlastsWhatIsCountedOn(t *testing.T) {
	for _, session := range []time.Duration{2 * time.Second, 6 * time.Second, 40 * time.Second} {
		slow := time.Duration(float64(PromiseReach(session)) * 1.001)
		fast := time.Duration(float64(PromiseLength(session)) * 0.999)
		if left := fast - slow; left < AfterLease(session) {
			t.Errorf("session %v: %v between the end of what is counted on and the promise's", session, left)
		}
		if left := session - StopEarly(session) - AskAfter(session); left < session/6 {
			t.Errorf("session %v: %v to ask in", session, left)
		}
		// A healthy node's newest write is never that old: it neither asks nor is taken for one that sees no ensemble.
		if healthy := 2 * beatEvery(session); AskAfter(session) <= healthy || GoneAfter(session) <= healthy {
			t.Errorf("session %v: asks after %v, gone after %v", session, AskAfter(session), GoneAfter(session))
		}
		// Two that lost it at the same moment agree on that before one of them has to stop.
		if late := GoneAfter(session) + beatEvery(session); late >= session-StopEarly(session) {
			t.Errorf("session %v: others agree after %v", session, late)
		}
	}
}

// The session is the same after an outage that outlasts the lease, and whoever holds it is not told to end.
func TestHeldSessionOutlivesTheLease(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			back := w.zk.Cut(zkfaults.Everyone, zkfaults.Both)
			id := s.ID()
			time.Sleep(testLease / 2)
			if !s.ExtendByPromises(w.now() + 3*time.Second) {
				t.Error("held too late")
			}
			time.Sleep(2 * time.Second)
			if s.Over() != nil || ctx.Err() != nil || w.now() < s.Backed() {
				t.Errorf("over: %v, asked to end: %v, backed for another %v", s.Over(), context.Cause(ctx), s.Backed()-w.now())
			}
			back()
			time.Sleep(time.Second)
			if s.Over() != nil || s.ID() != id || s.Backed() < w.now() {
				t.Errorf("over: %v, session %x then %x", s.Over(), id, s.ID())
			}
			return nil
		})
	})
}

// P3: an ended lease is never revived, nor one whose children were asked to end, nor one of a session that is known to be over.
func TestPromisesReviveNothing(t *testing.T) {
	for name, end := range map[string]func(w *world, s *Session){
		"ended":  func(w *world, s *Session) { <-s.Ended() },
		"ending": func(w *world, s *Session) { time.Sleep(testLease - StopEarly(testLease)/2) },
		"over":   func(w *world, s *Session) { s.Expire(ErrExpired) },
	} {
		inWorld(t, func(w *world) {
			err := w.open("a", func(ctx context.Context, s *Session) error {
				defer w.zk.Cut(zkfaults.Everyone, zkfaults.Both)()
				end(w, s)
				if s.ExtendByPromises(w.now() + time.Minute) {
					t.Errorf("%s: held", name)
				}
				select {
				case <-s.Ended():
				case <-time.After(testTimeout):
					t.Errorf("%s: goes on", name)
				}
				return nil
			})()
			if err == nil {
				t.Errorf("%s: no reason", name)
			}
		})
	}
}

// A session that is over when ZooKeeper is back ends what it holds at once.
func TestHeldSessionThatExpiredIsOver(t *testing.T) {
	inWorld(t, func(w *world) {
		err := w.open("a", func(ctx context.Context, s *Session) error {
			back := w.zk.Cut(zkfaults.Everyone, zkfaults.Both)
			time.Sleep(testLease / 2)
			s.ExtendByPromises(w.now() + 4*testTimeout)
			time.Sleep(2 * testTimeout)
			back()
			began := w.now()
			<-s.Ended()
			if took := w.now() - began; took > time.Second || s.Lease.End() != 0 {
				t.Errorf("over after %v, lease until %v", took, s.Lease.End())
			}
			return nil
		})()
		if !errors.Is(err, ErrExpired) {
			t.Error(err)
		}
	})
}

// P1: whoever the breadcrumb may list is counted on: those of the newest list that was acknowledged, and of every one since
// whose writing nobody has acknowledged.
func TestEverybodyWhoMayBeListedIsCountedOn(t *testing.T) {
	b, c := Peer{Node: "b", Machine: "m-b", Agent: "b:1"}, Peer{Node: "c", Machine: "m-c", Agent: "c:1"}
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, s *Session, cl *Claim) error {
			watching, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- cl.Watch(watching) }()
			counted := func(wantAcked bool, want ...Peer) {
				t.Helper()
				if got, acked := cl.Roll.Counted(); acked != wantAcked || !slices.Equal(got, want) {
					t.Errorf("counted %v, acknowledged %v; want %v, %v", got, acked, want, wantAcked)
				}
			}
			counted(false)
			cl.Roll.Enlist([]Peer{b})
			counted(false, b)
			time.Sleep(100 * time.Millisecond)
			counted(true, b)
			w.zk.LoseReply(zkfaults.Match{Op: jute.OpMulti})
			cl.Roll.Enlist([]Peer{c})
			time.Sleep(100 * time.Millisecond)
			counted(true, b, c)
			time.Sleep(testTimeout)
			counted(true, c)
			v, err := s.get(ctx, cl.paths.Crumb())
			crumb, bad := ReadBreadCrumb(v.data)
			if err != nil || bad != nil || crumb.Failsafe == nil || !crumb.Failsafe.Lists(c) || crumb.Failsafe.Lists(b) || crumb.Token != cl.Token {
				t.Errorf("the breadcrumb is %s, %v", v.data, err)
			}
			// Nobody: whoever finds that relies on our not going on, from when it may be read.
			w.zk.LoseReply(zkfaults.Match{Op: jute.OpMulti})
			cl.Roll.Enlist(nil)
			counted(false, c)
			time.Sleep(testTimeout)
			counted(false)
			cl.Roll.Enlist([]Peer{b})
			counted(false, b)
			time.Sleep(100 * time.Millisecond)
			counted(true, b)
			stop()
			<-ended
			return cl.Release(ctx)
		})
	})
}

func TestPeersAreToldOfEachChange(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			cand := stand(ctx, s, Race)
			var told atomic.Pointer[[]Peer]
			watching, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- cand.Members.Watch(watching, func(p []Peer) { told.Store(&p) }) }()
			other := w.open("b", func(ctx context.Context, s *Session) error {
				cand, _, err := s.NewCandidate(ctx, "svc", Race)
				if err == nil {
					err = cand.Members.Announce(ctx, Member{Role: "standby", Agent: "b:1"})
				}
				time.Sleep(time.Second)
				return err
			})
			time.Sleep(500 * time.Millisecond)
			if want := []Peer{{Node: "b", Machine: "m-b", Agent: "b:1"}}; !slices.Equal(*told.Load(), want) {
				t.Errorf("told of %v", *told.Load())
			}
			must.Report(t, other())
			time.Sleep(100 * time.Millisecond)
			if len(*told.Load()) != 0 {
				t.Errorf("told of %v", *told.Load())
			}
			stop()
			<-ended
			return nil
		})
	})
}

// That servers lost their data, and so do not take a session back, does not hide that they are there.
func TestEnsembleIsSightedThoughItDoesNotTakeUsBack(t *testing.T) {
	inWorld(t, func(w *world) {
		_ = w.open("a", func(ctx context.Context, s *Session) error {
			before := len(w.zk.Sessions())
			if !s.HasQuorum(ctx) || len(w.zk.Sessions()) != before {
				t.Errorf("not sighted, or a session is left: %v", w.zk.Sessions())
			}
			back := w.zk.Cut(zkfaults.Everyone, zkfaults.Both)
			bounded, cancel := context.WithTimeout(ctx, testTimeout)
			defer cancel()
			if s.HasQuorum(bounded) {
				t.Error("sighted though nobody answers")
			}
			s.ExtendByPromises(w.now() + 10*testTimeout)
			w.zk.Wipe()
			back()
			if !s.HasQuorum(context.WithoutCancel(ctx)) {
				t.Error("not sighted")
			}
			return nil
		})()
	})
}
