package election

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

var errExec = errors.New("this image of the process is no more")

// legacy is what one image leaves to the next.
type legacy struct {
	Session          CarriedSession
	Claim            CarriedClaim
	CarriedCandidate CarriedCandidate
}

// carriedOver is what the next image reads of an active node's session, whose image has ended.
func (w *world) carriedOver(node string) (left legacy) {
	w.Helper()
	var raw []byte
	err := w.open(node, func(ctx context.Context, s *Session) error {
		cand, claim := claimed(ctx, s, Queue)
		err := ErrCrumbChanged
		for errors.Is(err, ErrCrumbChanged) {
			err = claim.Inscribe(ctx)
		}
		try(err)
		left.CarriedCandidate = cand.Carry()
		if left.Claim, err = claim.Carry(); err != nil {
			return err
		}
		if left.Session, err = s.Carry(); err != nil {
			return err
		}
		raw, err = json.Marshal(left)
		s.dialer.shutdown()
		return errors.Join(errExec, err)
	})()
	if !errors.Is(err, errExec) {
		w.Fatal(err)
	}
	left = legacy{}
	must.OK(w, json.Unmarshal(raw, &left))
	return left
}

// resume goes on with a session, as a node's next image.
func (w *world) resume(node string, c CarriedSession, f func(ctx context.Context, s *Session) error) error {
	w.Helper()
	e := New(w.config(node))
	defer e.Wait()
	return e.Resume(w.Context(), c, caught(f))
}

func TestASessionIsCarriedOverWithItsClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		left := w.carriedOver("a")
		time.Sleep(300 * time.Millisecond)
		err := w.resume("a", left.Session, func(ctx context.Context, s *Session) error {
			if s.ID() != left.Session.Session || s.Lease.End() != left.Session.LeaseEnd {
				t.Errorf("session %x until %v, not %x until %v", s.ID(), s.Lease.End(), left.Session.Session, left.Session.LeaseEnd)
			}
			cand := stand(ctx, s, Queue)
			cand.Inherit(left.CarriedCandidate)
			claim, err := cand.Resume(left.Claim)
			try(err)
			watching, enough := context.WithTimeout(ctx, 3*testTimeout) // for as long as it takes to see that it is kept
			defer enough()
			if err := claim.Watch(watching); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the claim is watched in vain: %v", err)
			}
			if s.Lease.End() <= left.Session.LeaseEnd {
				t.Error("the lease was never extended")
			}
			return claim.Release(ctx)
		})
		must.OK(t, err)
		w.asOperator(func(ctx context.Context, s *Session) error {
			p := Paths{Root: s.cfg.Root, Service: "svc"}
			for _, path := range []string{p.Lock(), p.Crumb()} {
				if there, err := exists(ctx, s, path); there || err != nil {
					t.Errorf("%s is there: %v, %v", path, there, err)
				}
			}
			if names, err := s.children(ctx, p.Queue()); err != nil || len(names) > 0 {
				t.Errorf("in the queue there is left: %v, %v", names, err)
			}
			return nil
		})
	})
}

// A place in the queue, and a preference, are left by the candidate that goes on, though another one has taken them.
func TestWhatACandidateHasIsCarriedOver(t *testing.T) {
	inWorld(t, func(w *world) {
		left := w.carriedOver("a")
		var standby CarriedSession
		var standing CarriedCandidate
		err := w.open("b", func(ctx context.Context, s *Session) error {
			cand, _, err := s.NewCandidate(ctx, "svc", Queue)
			if err == nil {
				err = cand.Prefer(ctx, 3)
			}
			if err == nil {
				_, err = cand.queue.predecessor(ctx)
			}
			if err == nil {
				standing = cand.Carry()
				standby, err = s.Carry()
			}
			s.dialer.shutdown()
			return errors.Join(errExec, err)
		})()
		if !errors.Is(err, errExec) {
			t.Fatal(err)
		}
		err = w.resume("b", standby, func(ctx context.Context, s *Session) error {
			cand := stand(ctx, s, Queue)
			cand.Inherit(standing)
			try(errors.Join(cand.Withdraw(ctx), cand.Prefer(ctx, 0)))
			for _, dir := range []string{cand.paths.Queue(), cand.paths.Preferred()} {
				names, err := s.children(ctx, dir)
				for _, name := range names {
					if dir+"/"+name != left.CarriedCandidate.Place {
						t.Errorf("left behind: %s/%s", dir, name)
					}
				}
				try(err)
			}
			return nil
		})
		must.OK(t, err)
	})
}

// What was left of the lease is all that there is, whether or not a server can be reached.
func TestACarriedLeaseEndsWhenItWouldHave(t *testing.T) {
	inWorld(t, func(w *world) {
		left := w.carriedOver("a")
		w.zk.Expire(left.Session.Session)
		err := w.resume("a", left.Session, func(ctx context.Context, s *Session) error {
			<-s.Ended()
			if now := w.now(); now > left.Session.LeaseEnd {
				t.Errorf("it ended %v late", now-left.Session.LeaseEnd)
			}
			return nil
		})
		if !errors.Is(err, ErrExpired) {
			t.Errorf("over because of %v", err)
		}

		left = w.carriedOver("b")
		time.Sleep(testTimeout)
		began := w.now()
		over := began // also when nothing is served
		err = w.resume("b", left.Session, func(ctx context.Context, s *Session) error {
			<-s.Ended()
			over = w.now()
			return nil
		})
		if !errors.Is(err, ErrLeaseEnding) && !errors.Is(err, ErrExpired) || over != began {
			t.Errorf("a lease that was over ended after %v, because of %v", over-began, err)
		}
	})
}

// A claim that is not complete, and a session that does not stand, are not carried over.
func TestOnlyWhatStandsIsCarriedOver(t *testing.T) {
	inWorld(t, func(w *world) {
		err := w.open("a", func(ctx context.Context, s *Session) error {
			_, claim := claimed(ctx, s, Race)
			claim.found = false
			if _, err := claim.Carry(); err == nil {
				t.Error("a claim without a breadcrumb was carried over")
			}
			claim.found = true
			s.Expire(ErrExpired)
			if _, err := s.Carry(); !errors.Is(err, ErrExpired) {
				t.Errorf("a session that is over was carried over: %v", err)
			}
			return errExec
		})()
		if !errors.Is(err, errExec) {
			t.Fatal(err)
		}
	})
}
