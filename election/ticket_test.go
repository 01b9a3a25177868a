package election

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/election/zkmem"
)

func zkmemCreateIn(path string) zkmem.Match { return zkmem.Match{Op: jute.OpCreate, Path: path} }

// leave has a node become active and vanish without a word, and returns what its guardians know.
func (w *world) leave(node string) (Ticket, Release) {
	w.Helper()
	var ticket Ticket
	var release Release
	gone := errors.New("gone")
	err := w.open(node, func(ctx context.Context, s *Session) error {
		cl, err := activate(ctx, s)
		if err != nil {
			return err
		}
		ticket, release = s.Ticket(), Release{Lock: cl.paths.Lock(), Crumb: cl.paths.Crumb()}
		return gone
	})()
	if !errors.Is(err, gone) {
		w.Fatal(err)
	}
	return ticket, release
}

func TestTicketClosesASessionAndRemovesItsBreadcrumb(t *testing.T) {
	inWorld(t, func(w *world) {
		ticket, release := w.leave("a")
		if err := ticket.Close(w.Context(), w.dial, []Release{release}, true); err != nil {
			w.Fatal(err)
		}
		if slices.Contains(w.zk.Sessions(), ticket.Session) {
			w.Error("the session lives")
		}
		w.within("b", func(ctx context.Context, s *Session) error {
			began := w.now()
			_, cl, err := claim(ctx, s, Race)
			if err != nil {
				return err
			}
			if cl.Previous != nil || w.now() != began {
				w.Errorf("previous %+v, after %v", cl.Previous, w.now()-began)
			}
			return cl.Release(ctx)
		})
		if err := ticket.Close(w.Context(), w.dial, []Release{release}, true); err != nil {
			w.Errorf("closing a second time: %v", err)
		}
	})
}

// P2: a breadcrumb of a tree that was not proved dead stays, and so does the session.
func TestTicketLeavesWhatIsNotProved(t *testing.T) {
	inWorld(t, func(w *world) {
		ticket, release := w.leave("a")
		if err := ticket.Close(w.Context(), w.dial, nil, false); err != nil {
			w.Fatal(err)
		}
		if !slices.Contains(w.zk.Sessions(), ticket.Session) {
			w.Error("the session was closed")
		}
		w.asOperator(func(ctx context.Context, s *Session) error {
			for _, path := range []string{release.Lock, release.Crumb} {
				if there, err := exists(ctx, s, path); !there || err != nil {
					w.Errorf("%s: %v %v", path, there, err)
				}
			}
			return nil
		})
	})
}

func TestTicketDoesNotTouchTheBreadcrumbOfAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		ticket, release := w.leave("a")
		other := BreadCrumb{Node: "b", Session: "0x77"}
		w.asOperator(func(ctx context.Context, s *Session) error { return s.set(ctx, release.Crumb, encode(other), -1) })
		if err := ticket.Close(w.Context(), w.dial, []Release{release}, true); err != nil {
			w.Fatal(err)
		}
		w.asOperator(func(ctx context.Context, s *Session) error {
			v, err := s.look(ctx, release.Crumb)
			if named, bad := decode[BreadCrumb](v.data); named.Node != "b" || bad != nil {
				w.Errorf("the breadcrumb names %q: %v", named.Node, bad)
			}
			return err
		})
	})
}

func TestTicketTriesUntilAServerAnswers(t *testing.T) {
	inWorld(t, func(w *world) {
		ticket, release := w.leave("a")
		w.zk.Down()
		time.AfterFunc(3*time.Second, w.zk.Up)
		if err := ticket.Close(w.Context(), w.dial, []Release{release}, true); err != nil {
			w.Fatal(err)
		}
		if slices.Contains(w.zk.Sessions(), ticket.Session) {
			w.Error("the session lives")
		}
	})
}
