package election

import (
	"context"
	"errors"
	"testing"
)

// A server that lost the giving back of a lock shows it as ours again after others have had it. P1: it is not taken, and goes
// with the session.
func TestLockFromBeforeALaterClaimIsNotTaken(t *testing.T) {
	p := Paths{"/understudy", "svc"}
	for name, later := range map[string]func(w *world, c *Candidate){
		"a later claim shows in the folder": func(w *world, _ *Candidate) {
			w.asOperator(func(ctx context.Context, s *Session) error { return s.set(ctx, p.Dir(), []byte("{}"), -1) })
		},
		"the breadcrumb names a later token": func(w *world, c *Candidate) {
			w.asOperator(func(ctx context.Context, s *Session) error {
				return s.set(ctx, p.Crumb(), encode(BreadCrumb{Node: "b", Session: "0x1", Token: 1 << 40, Tree: []byte(`{"of":"b"}`)}), -1)
			})
		},
		"a later token was seen": func(_ *world, c *Candidate) { c.newest++ },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				err := w.open("a", func(ctx context.Context, s *Session) error {
					c, err := w.unanswered(ctx, s, Race)
					if err != nil {
						return err
					}
					o, err := c.Wait(ctx)
					if err != nil || !o.Ours() {
						w.Errorf("the lock is not there: %v", err)
					}
					later(w, c)
					if cl, err := c.Take(ctx, o, BreadCrumb{Tree: []byte(`{}`)}); cl != nil || !errors.Is(err, ErrTorn) {
						w.Errorf("taken: %+v %v", cl, err)
					}
					return nil
				})()
				if !errors.Is(err, ErrTorn) {
					w.Errorf("the session ended with %v", err)
				}
				w.asOperator(func(ctx context.Context, s *Session) error {
					if there, err := exists(ctx, s, p.Lock()); there || err != nil {
						w.Errorf("the lock is left: %v %v", there, err)
					}
					return nil
				})
				w.within("b", func(ctx context.Context, s *Session) error { // and others go on
					_, err := activate(ctx, s)
					return err
				})
			})
		})
	}
}

// A fresh lock, too, has the greatest token that there ever was.
func TestTokenThatFallsIsNotTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		err := w.open("a", func(ctx context.Context, s *Session) error {
			c, _, err := s.Stand(ctx, "svc", Race)
			if err != nil {
				return err
			}
			o, err := c.Wait(ctx)
			if err != nil {
				return err
			}
			c.newest = 1 << 40
			if cl, err := c.Take(ctx, o, BreadCrumb{Tree: []byte(`{}`)}); cl != nil || !errors.Is(err, ErrTorn) {
				w.Errorf("taken: %+v %v", cl, err)
			}
			return nil
		})()
		if !errors.Is(err, ErrTorn) {
			w.Errorf("the session ended with %v", err)
		}
	})
}
