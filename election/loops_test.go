package election

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election/jute"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
)

// slowly gives each request a length, so that who asks again and again lets time pass.
func (w *world) slowly() { w.zk.Delay(zkfaults.Everyone, 100*time.Microsecond) }

// bounded fails the test when more requests are sent in a time than a growing pause allows.
func (w *world) bounded(most int64, of time.Duration, f func(ctx context.Context) error) error {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), of)
	defer cancel()
	before, began := w.counted(), w.now()
	err := f(ctx)
	if n := w.counted() - before; n > most {
		w.Errorf("%d requests in %v, at most %d are wanted", n, w.now()-began, most)
	}
	return err
}

// writeByHand does what a restore does.
func (w *world) writeByHand(path string) {
	w.Helper()
	w.asOperator(func(ctx context.Context, s *Session) error {
		v, err := s.getW(ctx, path)
		try(err)
		return s.set(ctx, path, v.data, -1)
	})
}

// A write to the service's folder raises the number of claims, but is none: the lock is given back all the same.
func TestALockIsGivenBackAfterTheServicesFolderWasWrittenByHand(t *testing.T) {
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, s *Session, c *Claim) error {
			w.slowly()
			w.writeByHand(c.paths.Dir())
			if err := w.bounded(50, 20*time.Second, c.Release); err != nil {
				w.Errorf("release: %v", err)
			}
			if held := w.held(s); held != "" {
				w.Errorf("left: %q", held)
			}
			return nil
		})
	})
}

// Nor does it end a term whose breadcrumb is not written yet, or is to be written again.
func TestABreadcrumbIsWrittenAfterTheServicesFolderWasWrittenByHand(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.leaveCrumb()
		w.claims("a", func(ctx context.Context, s *Session, c *Claim) error {
			w.slowly()
			w.writeByHand(p.Dir())
			if err := w.bounded(50, 20*time.Second, c.Inscribe); err != nil || c.Previous != nil {
				w.Errorf("inscribe: %v, previous %+v", err, c.Previous)
			}
			w.writeByHand(p.Dir())
			c.Roll.Enlist([]Peer{{Node: "b", Machine: "m-b", Agent: "b:1"}})
			watching, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			if err := c.Watch(watching); !errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("watch: %v", err)
			}
			if _, acked := c.Roll.Counted(); !acked {
				w.Error("the list of members was not written")
			}
			return c.Release(ctx)
		})
	})
}

// Who wrote the folder may have claimed the lock: then nothing of that claim is touched.
func TestAClaimIsNotTakenForAWriteByHand(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.leaveCrumb()
		w.claims("a", func(ctx context.Context, s *Session, a *Claim) error {
			w.byHand(p.Lock())
			w.claims("b", func(ctx context.Context, s2 *Session, b *Claim) error {
				w.writeByHand(p.Dir())
				if err := a.Inscribe(w.Context()); !errors.Is(err, ErrLost) {
					w.Errorf("inscribe: %v", err)
				}
				if err := a.Release(w.Context()); err != nil {
					w.Errorf("release: %v", err)
				}
				if held := w.held(s2); held != crumbName+" "+lockName {
					w.Errorf("left: %q", held)
				}
				return b.Release(ctx)
			})
			return nil
		})
	})
}

// What ZooKeeper refuses is said, and not asked for again and again.
func TestWhatIsRefusedIsSaid(t *testing.T) {
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, s *Session, c *Claim) error {
			w.slowly()
			w.zk.Refuse(zkfaults.Match{Op: jute.OpDelete, Path: lockName, Count: zkfaults.Always}, jute.NoAuth)
			if err := w.bounded(50, 20*time.Second, c.Release); !errors.Is(err, zk.ErrNoAuth) {
				w.Errorf("release: %v", err)
			}
			w.zk.Forget()
			return c.Release(ctx)
		})
	})
}

// What a busy server refuses may pass: it is asked again, ever more rarely.
func TestABusyServerIsAnsweredByAGrowingPause(t *testing.T) {
	for name, f := range map[string]func(w *world, c *Claim) func(context.Context) error{
		"inscribe": func(w *world, c *Claim) func(context.Context) error {
			w.byHand(c.paths.Crumb())
			c.found = false
			return c.Inscribe
		},
		"release": func(_ *world, c *Claim) func(context.Context) error { return c.Release },
		"withdraw": func(w *world, c *Claim) func(context.Context) error {
			w.byHand(c.paths.Lock())
			return c.Release
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.activates("a", func(ctx context.Context, s *Session, c *Claim) error {
					do := f(w, c)
					w.slowly()
					w.zk.Refuse(zkfaults.Match{Op: jute.OpMulti, Count: zkfaults.Always}, jute.ThrottledOp)
					if err := w.bounded(200, 20*time.Second, do); !errors.Is(err, context.DeadlineExceeded) {
						w.Errorf("it ended: %v", err)
					}
					w.zk.Forget()
					return c.Release(ctx)
				})
			})
		})
	}
}

// A server may have a lock's creation refused that it does not show.
func TestACandidateAtAServerThatLostTheLockAsksEverMoreRarely(t *testing.T) {
	inWorld(t, func(w *world) {
		w.within("a", func(ctx context.Context, s *Session) error {
			w.slowly()
			w.zk.Refuse(zkfaults.Match{Op: jute.OpMulti, Path: lockName, Count: zkfaults.Always}, jute.NodeExists)
			err := w.bounded(200, 20*time.Second, func(ctx context.Context) error {
				_, _, err := claim(ctx, s, Race)
				return err
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("it ended: %v", err)
			}
			w.zk.Forget()
			return nil
		})
	})
}

// The same of a node's own znode.
func TestANodeThatIsRefusedItsNameAsksEverMoreRarely(t *testing.T) {
	inWorld(t, func(w *world) {
		w.slowly()
		w.zk.Refuse(zkfaults.Match{Op: jute.OpCreate, Path: "nodes/a", Count: zkfaults.Always}, jute.NodeExists)
		_ = w.bounded(200, 20*time.Second, func(ctx context.Context) error {
			return New(w.config("a")).Open(ctx, func(context.Context, *Session) error { return nil })
		})
		w.zk.Forget()
	})
}

// All of a service deleted under its owner, with nobody to make it anew: there is nothing left to be given back.
func TestALockWhoseServiceWasDeletedAsAWholeIsGivenBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, s *Session, c *Claim) error {
			w.deleteAll()
			if err := w.bounded(50, 20*time.Second, c.Release); err != nil {
				w.Errorf("release: %v", err)
			}
			return nil
		})
	})
}

// Guardians read what they remove, and read it anew when somebody wrote to the folder in between.
func TestATicketRemovesWhatItLeftThoughTheServicesFolderIsWrittenByHand(t *testing.T) {
	inWorld(t, func(w *world) {
		left, of := w.leave("a")
		dial := func(ctx context.Context, server string) (net.Conn, error) {
			c, err := w.dial(ctx, server)
			return &meddled{c, 3, func() { w.writeByHand(of.Dir) }}, err
		}
		must.Report(w, left.Close(w.Context(), dial, []Release{of}, endedAt(time.Now()), true))
		if n := len(w.zk.Sessions()); n > 0 {
			w.Errorf("%d sessions are left", n)
		}
		w.asOperator(func(ctx context.Context, s *Session) error {
			if held := w.held(s); held != "" {
				w.Errorf("left: %q", held)
			}
			return nil
		})
	})
}

// One that cannot be removed does not keep the session from being closed.
func TestATicketDoesNotInsistOnWhatIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		left, of := w.leave("a")
		w.slowly()
		w.zk.Refuse(zkfaults.Match{Op: jute.OpDelete, Path: crumbName, Count: zkfaults.Always}, jute.BadVersion)
		err := w.bounded(50, 20*time.Second, func(ctx context.Context) error {
			return left.Close(ctx, w.dial, []Release{of}, endedAt(time.Now()), true)
		})
		if n := len(w.zk.Sessions()); err != nil || n > 0 {
			w.Errorf("%d sessions are left: %v", n, err)
		}
	})
}
