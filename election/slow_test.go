package election

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election/jute"
	"understudy/supervisor/testbed/zkfaults"
)

// One line a session says that answers take long, and how long.
func TestSlowAnswersAreToldOnceInASession(t *testing.T) {
	for _, c := range []struct {
		delay time.Duration
		want  int
	}{{0, 0}, {testTimeout / 20, 1}} {
		inWorld(t, func(w *world) {
			if c.delay > 0 {
				defer w.zk.Delay(func(zkfaults.Client) bool { return true }, c.delay/2)()
			}
			var said notes
			cfg := w.config("a")
			cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &said})
			e := New(cfg)
			err := e.Open(w.Context(), func(ctx context.Context, _ *Session) error {
				time.Sleep(10 * testTimeout)
				return ctx.Err()
			})
			e.Wait()
			if log := said.String(); err != nil || strings.Count(log, "ZooKeeper answers slowly") != c.want || c.want > 0 && !strings.Contains(log, "round_trip="+c.delay.String()) {
				w.Errorf("%v: %v\n%s", c.delay, err, log)
			}
		})
	}
}

// A server that is slow for all is not given up, and costs no lease: each heartbeat extends it from its own sending.
func TestSlowAnswersEndNoLease(t *testing.T) {
	for _, roundTrip := range []time.Duration{testLease / 3, testLease * 2 / 3, testLease * 3 / 4} {
		inWorld(t, func(w *world) {
			ended := w.open("a", func(ctx context.Context, s *Session) error {
				slow := w.zk.Delay(zkfaults.Everyone, roundTrip/2)
				connection := s.Resumed()
				time.AfterFunc(10*testLease, func() {
					if left := s.End() - w.now(); left > testLease-roundTrip {
						w.Errorf("%v: its lease lasts for %v from an answer", roundTrip, left)
					}
					if said := string(s.Self.data()); !strings.Contains(said, "ZooKeeper takes "+roundTrip.Round(100*time.Millisecond).String()+" a write") {
						w.Errorf("%v: the node says %s", roundTrip, said)
					}
				})
				select {
				case <-time.After(20 * testLease):
				case <-connection:
					w.Errorf("%v: it has connected anew", roundTrip)
				case <-ctx.Done():
					w.Errorf("%v: the lease has ended: %v", roundTrip, context.Cause(ctx))
				}
				slow()
				return nil
			})
			_ = ended()
		})
	}
}

// P7: a refusal that says nothing about the connection, such as of a busy server, slows the heartbeats of that connection for no longer than itself.
func TestHeartbeatsGoOnAfterARefusal(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			w.zk.Refuse(zkfaults.Match{Op: jute.OpSetData}, jute.ThrottledOp)
			time.Sleep(testLease)
			defer w.zk.Delay(zkfaults.Everyone, testLease/3)()
			select {
			case <-time.After(5 * testLease):
			case <-ctx.Done():
				w.Errorf("the lease has ended: %v", context.Cause(ctx))
			}
			return nil
		})
	})
}

// What is sent without a connection would wait for one, and be sent in front of the first heartbeat there.
func TestNoHeartbeatsPileUpWithoutAConnection(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			s.ExtendByPromises(w.now() + time.Hour)
			w.zk.Down()
			time.Sleep(100 * testLease)
			before := w.zk.Requests()[jute.OpSetData]
			w.zk.Up()
			time.Sleep(testLease)
			if n := w.zk.Requests()[jute.OpSetData] - before; n < 1 || n > 2*int64(testLease/beatEvery(testLease)) {
				w.Errorf("%d heartbeats in the first lease of a new connection", n)
			}
			return nil
		})
	})
}
