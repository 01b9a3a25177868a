package election

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/must"
	"understudy/supervisor/testbed/zkfaults"
)

// silence cuts a session off, and gives the time of its last heartbeat that was acknowledged.
func (w *world) silence(s *Session) (acked time.Duration, heal func()) {
	id := s.ID()
	heal = w.zk.Cut(func(c zkfaults.Client) bool { return c.SessionID == id }, zkfaults.Both)
	return s.Acked(), heal
}

// holds has a node take the lock of svc, and keep its session until ends is called.
func (w *world) holds(node string) (s *Session, ends func()) {
	held, free := make(chan *Session, 1), make(chan struct{})
	ended := w.open(node, func(ctx context.Context, s *Session) error {
		if _, err := activate(ctx, s); err != nil {
			return err
		}
		held <- s
		<-free
		return nil
	})
	return <-held, func() {
		close(free)
		_ = ended()
	}
}

// P3, P6: the lock of a node that is gone is taken when its lease is over, and not before. ZooKeeper would end its session later.
func TestALockIsTakenWhenItsNodesBeatIsOver(t *testing.T) {
	for _, mode := range []Mode{Race, Queue} {
		inWorld(t, func(w *world) {
			a, ends := w.holds("a")
			w.within("b", func(ctx context.Context, s *Session) error {
				acked := make(chan time.Duration, 1)
				time.AfterFunc(5*testTimeout, func() {
					sent, _ := w.silence(a)
					acked <- sent
				})
				_, b := claimed(ctx, s, mode)
				took := w.now() - <-acked
				if took < OverAfter(testLease) || took > OverAfter(testLease)+beatEvery(testLease) {
					w.Errorf("%s: claimed %v after the last heartbeat, and the lease lasts for %v", mode, took, testLease)
				}
				delay, err := b.Delay(ctx, time.Second)
				if delay != time.Second {
					w.Errorf("%s: who has watched waits for %v after the claim", mode, delay)
				}
				return err
			})
			ends()
		})
	}
}

// A node that comes back replaces its beat as soon as that is over for itself, which may be a moment sooner than for others.
func TestANodeThatComesBackDoesNotKeepOthersFromItsLock(t *testing.T) {
	inWorld(t, func(w *world) {
		a, ends := w.holds("a")
		w.within("b", func(ctx context.Context, s *Session) error {
			acked := make(chan time.Duration, 1)
			time.AfterFunc(5*testTimeout, func() {
				sent, _ := w.silence(a)
				acked <- sent
				time.AfterFunc(OverAfter(testLease)-2*beatEvery(testLease), func() {
					w.asOperator(func(ctx context.Context, o *Session) error {
						path := NodesDir("/understudy") + "/a"
						v, err := o.exists(ctx, path)
						if err != nil {
							return err
						}
						last := LastBeat{SessionName(v.stat.EphemeralOwner), v.stat.Version}
						_, err = o.multi(ctx, &zk.DeleteRequest{Path: path, Version: v.stat.Version},
							&zk.CreateRequest{Path: path, Data: encode(Node{Node: "a", Replaced: &last}), Acl: o.acl})
						return err
					})
				})
			})
			_, _, err := claim(ctx, s, Race)
			if took := w.now() - <-acked; took > OverAfter(testLease)+beatEvery(testLease) {
				w.Errorf("claimed %v after the last heartbeat", took)
			}
			return err
		})
		ends()
	})
}

// Nor does it wait for what it has seen already: the lease of its previous session was over when it took its name back.
func TestANodeThatComesBackTakesItsLockAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		a, ends := w.holds("a")
		time.Sleep(5 * testTimeout)
		w.silence(a)
		began := w.now()
		w.within("a", func(ctx context.Context, s *Session) error {
			_, again := claimed(ctx, s, Race)
			if took := w.now() - began; took < OverAfter(testLease) || took > OverAfter(testLease)+beatEvery(testLease) {
				w.Errorf("claimed %v after it came back, and the lease lasts for %v", took, testLease)
			}
			delay, err := again.Delay(ctx, time.Second)
			if delay != time.Second || again.leased {
				w.Errorf("it waits for %v after the claim; its lease may last: %v", delay, again.leased)
			}
			return err
		})
		ends()
	})
}

// Whoever proves that all of a dead supervisor's programs are dead frees its lock for all: nobody has anything to fence.
func TestWhatIsProvedDeadIsFencedByNobody(t *testing.T) {
	for what, awaits := range map[string]func(*BreadCrumb){
		"nothing":   func(*BreadCrumb) {},
		"effects":   func(b *BreadCrumb) { b.Names = []string{"address"} },
		"a process": func(b *BreadCrumb) { b.Leftover = Leftover{Known: true, Pid: 7} },
		"others' promises": func(b *BreadCrumb) {
			b.Failsafe = &Failsafe{Members: []Peer{{Node: "b", Machine: "m-b", Agent: "b:1"}}}
		},
		"a record by hand": func(b *BreadCrumb) { b.Name = "another" },
	} {
		inWorld(t, func(w *world) {
			a, ends := w.holds("a")
			crumb := &Crumb{a, Paths{"/understudy", "svc"}}
			w.asOperator(func(ctx context.Context, o *Session) error {
				v, err := o.get(ctx, crumb.paths.Crumb())
				if err != nil {
					return err
				}
				left, err := ReadBreadCrumb(v.data)
				if err != nil {
					return err
				}
				awaits(&left)
				if _, _, err := (&History{a, crumb.paths.History()}).Record(ctx, Activation{Token: v.stat.Czxid, Start: time.Now()}, "", Ending{}); err != nil {
					return err
				}
				return o.set(ctx, crumb.paths.Crumb(), encode(left), v.stat.Version)
			})
			w.silence(a)
			again := New(w.config("a"))
			again.Died(a.ID())
			began := w.now()
			ended := make(chan error, 1)
			go func() {
				ended <- again.Open(w.Context(), func(ctx context.Context, s *Session) error {
					c, _, err := s.NewCandidate(ctx, "svc", Race)
					if err == nil {
						c.Outlasting(func(*BreadCrumb) bool { return false })
						_, err = c.Wait(ctx)
					}
					return err
				})
				again.Wait()
			}()
			w.within("b", func(ctx context.Context, s *Session) error {
				_, b := claimed(ctx, s, Race)
				if took := w.now() - began; took > beatEvery(testLease) {
					w.Errorf("claimed after %v", took)
				}
				if fences := b.Previous != nil; fences != (what != "nothing") {
					w.Errorf("%s: it fences: %v", what, fences)
				}
				if what != "nothing" {
					return nil
				}
				_, lost, err := (&History{s, b.paths.History()}).Record(ctx, Activation{Token: b.Token, Start: time.Now(), Fenced: NoBreadcrumb}, LostTo(NoBreadcrumb), b.PreviousEnding(nil))
				if lost == nil || lost.EndMax == nil {
					w.Errorf("the history does not say that a was lost: %+v", lost)
				}
				return err
			})
			must.Report(w, <-ended)
			ends()
		})
	}
}

// The program of a failsafe service may outlast its lease: its lock goes with the session alone.
func TestTheLockOfAFailsafeServiceIsNotTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		ended := w.open("a", func(ctx context.Context, a *Session) error {
			c, err := activate(ctx, a)
			if err != nil {
				return err
			}
			c.crumb.Failsafe = &Failsafe{Members: []Peer{{Node: "b", Machine: "m-b", Agent: "b:1"}}}
			if err := c.rewrite(ctx); err != nil {
				return err
			}
			acked, heal := w.silence(a)
			defer heal()
			w.claims("b", func(context.Context, *Session, *Claim) error {
				if took := w.now() - acked; took < testTimeout {
					w.Errorf("claimed after %v", took)
				}
				return nil
			})
			return nil
		})
		_ = ended()
	})
}

// P3: what a node has seen only makes the transaction worth a try. A server that lags shows an old version for any time.
func TestALockOfANodeThatSendsHeartbeatsIsNotTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, a *Session, c *Claim) error {
			w.within("b", func(ctx context.Context, s *Session) error {
				cand := stand(ctx, s, Race)
				lock, trail, err := cand.acquisition.readLock(ctx)
				try(err)
				held := &beat{all: &s.beats, of: beatOf{"a", lock.stat.EphemeralOwner}, news: make(chan struct{})}
				try(held.look(ctx))
				held.since -= testTimeout // as if it had been seen long ago
				time.Sleep(2 * beatEvery(testLease))
				try(cand.acquisition.vacate(ctx, held, lock, trail))
				if lock, err := s.exists(ctx, c.paths.Lock()); !lock.exists || err != nil {
					w.Errorf("the lock is gone: %v", err)
				}
				return nil
			})
			return nil
		})
	})
}

// P3: between the look at the lock of a silent node and that at the names another node takes it.
func TestALockThatWasTakenMeanwhileIsNotTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		a, ends := w.holds("a")
		w.silence(a)
		w.within("b", func(ctx context.Context, s *Session) error {
			cand := stand(ctx, s, Race)
			lock, trail, err := cand.acquisition.readLock(ctx)
			try(err)
			held := cand.acquisition.watchHolder(lock)
			defer held.leave()
			w.claims("c", func(ctx context.Context, _ *Session, c *Claim) error {
				if err := held.look(ctx); err != nil {
					return err
				}
				if cand.acquisition.names, err = s.names(ctx, c.paths); err != nil {
					return err
				}
				if err := cand.acquisition.vacate(ctx, held, lock, trail); !unknown(err) {
					w.Errorf("vacated: %v", err)
				}
				if err := c.verify(ctx); err != nil {
					w.Errorf("the new lock: %v", err)
				}
				return nil
			})
			return nil
		})
		ends()
	})
}

// P1: whoever takes a delay for a proof writes the breadcrumb only while the previous node has sent no heartbeat since.
func TestADelayIsNoProofOfANodeThatSendsHeartbeats(t *testing.T) {
	inWorld(t, func(w *world) {
		w.activates("a", func(ctx context.Context, a *Session, c *Claim) error {
			w.byHand(c.paths.Lock())
			w.claims("b", func(ctx context.Context, s *Session, b *Claim) error {
				first, err := b.Delay(ctx, 0)
				if err != nil || first < OverAfter(testLease) {
					w.Errorf("the first look is of now, and it waits for %v: %v", first, err)
				}
				time.Sleep(2 * beatEvery(testLease))
				if silent, err := b.Silent(ctx); silent || err != nil {
					w.Errorf("taken for silent all the same: %v", err)
				}
				if next, err := b.Delay(ctx, 0); next < first+beatEvery(testLease) || err != nil {
					w.Errorf("after a heartbeat it waits for %v, and did for %v: %v", next, first, err)
				}
				if silent, err := b.Silent(ctx); !silent || err != nil {
					w.Errorf("silent since the last look, and not taken for that: %v", err)
				}
				return nil
			})
			return nil
		})
	})
}

// A session that ZooKeeper ends while a claimant waits for the grace delay takes nothing back: the lease was over before.
func TestASessionThatEndsDuringTheGraceDelayCostsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		a, ends := w.holds("a")
		w.within("b", func(ctx context.Context, s *Session) error {
			time.AfterFunc(5*testTimeout, func() { w.silence(a) })
			_, b := claimed(ctx, s, Race)
			const grace = testTimeout
			for range 2 {
				if delay, err := b.Delay(ctx, grace); delay != grace || b.leased || err != nil {
					w.Errorf("it waits for %v, its lease may last: %v, %v", delay, b.leased, err)
				}
				time.Sleep(time.Until(b.Since.Add(grace)))
			}
			if there, err := exists(ctx, s, NodesDir("/understudy")+"/a"); there || err != nil {
				w.Errorf("the session is still there: %v", err)
			}
			silent, err := b.Silent(ctx)
			if !silent {
				w.Error("its silence is not proved")
			}
			return err
		})
		ends()
	})
}
