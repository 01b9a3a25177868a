package election

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"understudy/election/jute"
	"understudy/election/zkmem"
	"understudy/supervisor/testbed/zkfaults"
)

// P1: from the sending of a heartbeat that was seen, by two clocks of which one is too slow and the other too fast by 2 percent. A watchdog, which
// may strike later, leaves 0.4 percent.
func TestNoLeaseOutlastsTheWaitOfWhoSeesItsBeatStandStill(t *testing.T) {
	for lease := minLease; lease <= 40*time.Second; lease += 100 * time.Millisecond {
		if slow, quick := lease*102/100, OverAfter(lease)*98/100; slow >= quick {
			t.Errorf("lease %v: a child may live for %v, and is waited for %v", lease, slow, quick)
		}
		if slow, quick := (lease+AfterLease(lease))*1004/1000, OverAfter(lease)*996/1000; slow >= quick {
			t.Errorf("lease %v: a watchdog may strike after %v, and is waited for %v", lease, slow, quick)
		}
	}
}

// stranger attaches to the session that has a lock, by what everybody may ask for, and closes it.
func (w *world) stranger(session int64) {
	w.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go w.zk.ServeConn(theirs)
	for _, records := range [][]jute.Record{
		{jute.ConnectRequest{Timeout: 1, SessionID: session, Password: zkmem.Password(session)}},
		{jute.RequestHeader{Xid: 1, Op: jute.OpCloseSession}},
	} {
		if _, err := ours.Write(jute.Frame(records...)); err != nil {
			w.Fatal(err)
		}
		if _, err := jute.ReadFrame(ours, 0); err != nil {
			w.Fatal(err)
		}
	}
}

func TestALockThatAStrangerFreedLeavesALeaseThatIsWaitedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		var attaching atomic.Bool
		ended := w.open("a", func(ctx context.Context, a *Session) error {
			if _, err := activate(ctx, a); err != nil {
				return err
			}
			id := a.ID()
			heal := w.zk.Cut(func(c zkfaults.Client) bool { return c.SessionID == id && !attaching.Load() }, zkfaults.Both)
			defer heal()
			attaching.Store(true)
			w.stranger(id)
			attaching.Store(false)
			w.claims("b", func(ctx context.Context, s *Session, b *Claim) error {
				left := a.Lease.End() - w.now()
				delay, err := b.Delay(ctx, 0)
				if delay < left {
					w.Errorf("waits for %v, and a's lease lasts for %v", delay, left)
				}
				return err
			})
			<-a.Ended()
			return nil
		})
		_ = ended()
	})
}

// A breadcrumb that does not tell its writer's lease counts as the longest that we know of.
func TestABreadcrumbWithoutALeaseCountsAsTheLongest(t *testing.T) {
	for _, data := range []string{`{"node":"x","session":"0x1"}`, `not JSON`} {
		inWorld(t, func(w *world) {
			w.asOperator(func(ctx context.Context, s *Session) error {
				if _, _, err := s.NewCandidate(ctx, "svc", Race); err != nil {
					return err
				}
				return s.create(ctx, Paths{"/understudy", "svc"}.Crumb(), []byte(data), 0)
			})
			w.within("a", func(ctx context.Context, s *Session) error {
				s.seen.saw(3 * testLease)
				_, c, err := claim(ctx, s, Race)
				if err == nil && c.Previous.LeaseMs != (3*testLease).Milliseconds() {
					w.Errorf("%s counts as a lease of %d ms", data, c.Previous.LeaseMs)
				}
				return err
			})
		})
	}
}
