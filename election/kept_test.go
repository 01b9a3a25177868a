package election

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// P1: no node deletes the lock of a session that another client keeps alive. After an operator has deleted it, the claimant waits as for
// a session that lives.
func TestALockOfAKeptSessionStaysUntilAnOperatorDeletesIt(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		ticket, _ := w.leave("a")
		defer w.zk.Keep(ticket.Session)()
		deleted := make(chan time.Duration, 1)
		var operator sync.WaitGroup
		defer operator.Wait()
		operator.Go(func() {
			time.Sleep(10 * testTimeout)
			deleted <- w.now()
			w.byHand(p.Lock())
		})
		w.within("b", func(ctx context.Context, s *Session) error {
			_, b, err := claim(ctx, s, Race)
			if err != nil {
				return err
			}
			if took := w.now() - <-deleted; took < 0 || took > testTick {
				w.Errorf("the lock was claimed %v after an operator deleted it", took)
			}
			if b.Previous == nil || b.Previous.Node != "a" {
				w.Fatalf("the breadcrumb names %+v", b.Previous)
			}
			if delay, err := b.Delay(ctx, 0); delay < testTimeout || err != nil {
				w.Errorf("a claimant that waits by time waits for %v: %v", delay, err)
			}
			return b.Release(ctx)
		})
	})
}

// The log of a node that cannot come back names the session and the znode that an operator has to delete.
func TestANodeWhoseNameAKeptSessionHasNamesWhatToDelete(t *testing.T) {
	inWorld(t, func(w *world) {
		path := NodesDir("/understudy") + "/a"
		ticket, _ := w.leave("a")
		defer w.zk.Keep(ticket.Session)()
		var said notes
		cfg := w.config("a")
		cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &said})
		back := make(chan error, 1)
		go func() {
			e := New(cfg)
			back <- e.Open(w.Context(), func(context.Context, *Session) error { return nil })
			e.Wait()
		}()
		time.Sleep(4 * testTimeout)
		log := said.String()
		if strings.Contains(log, "another supervisor has the name") || strings.Count(log, "sends no heartbeats") != 1 ||
			!strings.Contains(log, path) || !strings.Contains(log, SessionName(ticket.Session)) {
			w.Errorf("the log says\n%s", log)
		}
		w.byHand(path)
		if err := <-back; err != nil {
			w.Error(err)
		}
	})
}
