package election

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
)

func createIn(path string) zkfaults.Match { return zkfaults.Match{Op: jute.OpCreate, Path: path} }

// leave has a node become active and vanish without a word, and returns what its guardians know.
func (w *world) leave(node string) (Ticket, Release) {
	w.Helper()
	ticket, release, _ := w.leaveAt(node)
	return ticket, release
}

// leaveAt is leave, and tells when the session was last served: to close the connection takes the library up to a second.
func (w *world) leaveAt(node string) (Ticket, Release, time.Time) {
	w.Helper()
	var left time.Time
	var ticket Ticket
	var release Release
	gone := errors.New("gone")
	err := w.open(node, func(ctx context.Context, s *Session) error {
		cl := activated(ctx, s)
		ticket, release, left = s.Ticket(), cl.paths.Release(), time.Now()
		return gone
	})()
	if !errors.Is(err, gone) {
		w.Fatal(err)
	}
	return ticket, release, left
}

func TestTicketClosesASessionAndRemovesItsBreadcrumb(t *testing.T) {
	inWorld(t, func(w *world) {
		ticket, release := w.leave("a")
		must.OK(w, ticket.Close(w.Context(), w.dial, []Release{release}, endedAt(time.Now()), true))
		if slices.Contains(w.zk.Sessions(), ticket.Session) {
			w.Error("the session lives")
		}
		w.within("b", func(ctx context.Context, s *Session) error {
			began := w.now()
			_, cl := claimed(ctx, s, Race)
			if cl.Previous != nil || w.now() != began {
				w.Errorf("previous %+v, after %v", cl.Previous, w.now()-began)
			}
			return cl.Release(ctx)
		})
		if err := ticket.Close(w.Context(), w.dial, []Release{release}, endedAt(time.Now()), true); err != nil {
			w.Errorf("closing a second time: %v", err)
		}
	})
}

// P2: a breadcrumb of a tree that was not proved dead stays, and so does the session.
func TestTicketLeavesWhatIsNotProved(t *testing.T) {
	inWorld(t, func(w *world) {
		ticket, release := w.leave("a")
		must.OK(w, ticket.Close(w.Context(), w.dial, nil, endedAt(time.Now()), false))
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
		must.OK(w, ticket.Close(w.Context(), w.dial, []Release{release}, endedAt(time.Now()), true))
		w.asOperator(func(ctx context.Context, s *Session) error {
			v, err := s.getW(ctx, release.Crumb)
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
		must.OK(w, ticket.Close(w.Context(), w.dial, []Release{release}, endedAt(time.Now()), true))
		if slices.Contains(w.zk.Sessions(), ticket.Session) {
			w.Error("the session lives")
		}
	})
}

// meddled is a connection on which something happens just before the nth write.
type meddled struct {
	net.Conn
	left   int
	happen func()
}

func (m *meddled) Write(p []byte) (int, error) {
	if m.left--; m.left == 0 {
		m.happen()
	}
	return m.Conn.Write(p)
}

// Between a guardian's look and its transaction the lock may have been deleted by hand, and claimed.
func TestTicketHoldsOnlyWhileNobodyHasClaimed(t *testing.T) {
	inWorld(t, func(w *world) {
		ticket, release := w.leave("a")
		claimed, over := make(chan struct{}), make(chan struct{})
		var wait func() error
		dial := func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := w.dial(ctx, address)
			return &meddled{conn, 3, func() { // behind greeting and reads
				w.byHand(release.Lock, release.Crumb)
				wait = w.open("b", func(ctx context.Context, s *Session) error {
					b := activated(ctx, s)
					close(claimed)
					<-over
					if held := w.held(s); held != crumbName+" "+lockName {
						w.Errorf("left: %q", held)
					}
					return b.Release(ctx)
				})
				<-claimed
			}}, err
		}
		ticket.Lease = time.Minute // the meddling takes its time
		must.Report(w, ticket.Close(w.Context(), dial, []Release{release}, endedAt(time.Now()), true))
		close(over)
		must.Report(w, wait())
	})
}
