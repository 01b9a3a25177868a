package service

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/election/jute"
	"understudy/supervisor/child/box"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
	"understudy/supervisor/testbed/zkfaults"
)

// prepares is a guard that tells of each tree that is made for a candidate.
type prepares struct {
	haunted
	made chan time.Time
}

func (p prepares) NewTree(context.Context, uint64, string, []byte) (host.Tree, error) {
	p.made <- time.Now()
	return &endingTree{}, nil
}

// next waits for the next tree, for ten minutes at most.
func (p prepares) next(t *testing.T) time.Time {
	t.Helper()
	select {
	case at := <-p.made:
		return at
	case <-time.After(10 * time.Minute):
		t.Error("it never stands again")
		return time.Now()
	}
}

// served serves a service in one session until meanwhile returns.
func (e *ensemble) served(v *Service, meanwhile func()) {
	e.t.Helper()
	e.session(func(ctx context.Context, s *election.Session) error {
		serving, enough := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- v.Serve(serving, Session{Session: s, Epoch: 1, Gate: gateOf(s), Leave: ctx.Done()}) }()
		meanwhile()
		enough()
		return <-done
	})
}

// P5: after a loss of ZooKeeper's data nobody knows who was active. A node is a candidate again once every lease from before is over.
func TestANodeStandsAgainAfterALossOfData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk, guard := newEnsemble(t), prepares{made: make(chan time.Time, 1)}
		defer zk.server.Close()
		v := made(t, Conf{Service: config.Service{Election: "race", GraceDelay: 3 * time.Second}}, func(n *LocalNode) { n.Guard = func() host.Guard { return guard } })
		v.SetBirth(election.Birth{Czxid: 1 << 40}) // of another service's folder than there is
		began := time.Now()
		zk.served(v, func() {
			if waited := guard.next(t).Sub(began); waited < 3*time.Second+4*time.Second {
				t.Errorf("stands after %v", waited)
			}
		})
		if b := v.Birth(); b == (election.Birth{Czxid: 1 << 40}) {
			t.Error("the new folder is not the service's")
		}
		began = time.Now()
		zk.served(v, func() {
			if waited := guard.next(t).Sub(began); waited > time.Second {
				t.Errorf("sits it out again: %v", waited)
			}
		})
	})
}

// If a service is deleted by hand while this node backs off, its candidate is replaced, and backs off in turn.
func TestACandidateThatBacksOffIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk, guard := newEnsemble(t), prepares{made: make(chan time.Time, 1)}
		defer zk.server.Close()
		conf := Conf{Service: config.Service{Election: "race", Restart: config.Restart{RejoinAfter: time.Minute}}}
		v := made(t, conf, func(n *LocalNode) { n.Guard = func() host.Guard { return guard } })
		v.state.BackOffDue = true
		began := time.Now()
		zk.served(v, func() {
			time.Sleep(10 * time.Second)
			v.inbox.intents.erase()
			again := guard.next(t).Sub(began)
			if want := 10*time.Second + minPatience + time.Minute; again < want || again > want+time.Second {
				t.Errorf("stands after %v, want %v", again, want)
			}
		})
	})
}

// P6: a service is removed while its claim is not answered, and ZooKeeper is silent, or slow, for longer than a stop waits. The session goes
// on, so the lock has to be given back: no other node could have it, and a namesake could wait behind others for its own lock.
func TestARemovedServiceLeavesNoLockBehind(t *testing.T) {
	for name, disturb := range map[string]func(*zkfaults.Server) (end func()){
		"silent": func(s *zkfaults.Server) func() { return s.Cut(zkfaults.Everyone, zkfaults.Outbound) },
		"slow":   func(s *zkfaults.Server) func() { return s.Delay(zkfaults.Everyone, 450*time.Millisecond) },
	} {
		synctest.Test(t, func(t *testing.T) {
			zk, guard := newEnsemble(t), prepares{made: make(chan time.Time, 1)}
			zk.server, zk.timeout = zkfaults.New(zkfaults.Config{TickTime: 2 * time.Second}), 30*time.Second
			defer zk.server.Close()
			zk.server.LoseReply(zkfaults.Match{Op: jute.OpCreate, Path: "ActiveStandbyElectorLock"})
			v := made(t, Conf{Service: config.Service{Election: "race"}}, func(n *LocalNode) { n.Guard = func() host.Guard { return guard } })
			zk.session(func(ctx context.Context, s *election.Session) error {
				serving, enough := context.WithCancel(ctx)
				done := make(chan error, 1)
				go func() { done <- v.Serve(serving, Session{Session: s, Epoch: 1, Gate: gateOf(s), Leave: ctx.Done()}) }()
				guard.next(t)
				synctest.Wait() // the claim is sent
				end := disturb(zk.server)
				if name == "silent" {
					time.AfterFunc(2*proofPatience, end)
				}
				v.Remove()
				enough()
				select {
				case err := <-done:
					if err != nil {
						return err
					}
				case <-time.After(time.Minute):
					t.Errorf("%s: it still tries to leave", name)
					end()
					return <-done
				}
				cand, _, err := s.NewCandidate(ctx, v.name, election.Race)
				if err != nil {
					return err
				}
				switch free, err := cand.Wait(ctx); {
				case err != nil:
					return err
				case free.Ours():
					t.Errorf("%s: the lock is there, and belongs to this session", name)
				}
				return nil
			})
		})
	}
}

// P6: a service is removed when its candidate has ended for an upgrade, which is given up. Others would wait behind its place in the queue.
func TestAServiceRemovedDuringAnUpgradeLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk, guard := newEnsemble(t), prepares{made: make(chan time.Time, 1)}
		defer zk.server.Close()
		v := made(t, Conf{Service: config.Service{Election: "queue"}}, func(n *LocalNode) { n.Guard = func() host.Guard { return guard } })
		zk.session(func(ctx context.Context, s *election.Session) error {
			serve := func(cause error) {
				serving, stop := context.WithCancelCause(ctx)
				done := make(chan error, 1)
				go func() { done <- v.Serve(serving, Session{Session: s, Epoch: 1, Gate: gateOf(s), Leave: ctx.Done()}) }()
				time.Sleep(time.Second)
				stop(cause)
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			zk.self.Node = "b"
			zk.session(func(ctx context.Context, other *election.Session) error { // has the lock
				first, _, err := other.NewCandidate(ctx, v.name, election.Race)
				if err != nil {
					return err
				}
				free, err := first.Wait(ctx)
				if err != nil {
					return err
				}
				claim, err := first.Take(ctx, free, election.BreadCrumb{})
				if err != nil {
					return err
				}
				serve(ErrHandover)
				if v.mem.place.Place == "" {
					t.Error("it was not in the queue")
				}
				v.Remove()
				if v.Gone() {
					t.Error("gone, with a place in the queue")
				}
				zk.server.CloseBefore(zkfaults.Match{Op: jute.OpDelete, Path: "/members/"}) // once
				serve(nil)
				if !v.Gone() {
					t.Error("not gone")
				}
				if err := claim.Release(ctx); err != nil {
					return err
				}
				next, _, err := other.NewCandidate(ctx, v.name, election.Queue)
				if err != nil {
					return err
				}
				soon, enough := context.WithTimeout(ctx, time.Second)
				defer enough()
				if _, err := next.Wait(soon); err != nil {
					t.Errorf("the next in the queue: %v", err)
				}
				_ = next.Members.Watch(soon, func(left []election.Peer) {
					if len(left) > 0 {
						t.Errorf("left behind: %v", left)
					}
				})
				return nil
			})
			return nil
		})
	})
}

// interrupted is a guard that does something when it is to make a tree.
type interrupted struct {
	haunted
	act func()
}

func (i interrupted) NewTree(context.Context, uint64, string, []byte) (host.Tree, error) {
	i.act()
	return &endingTree{}, nil
}

// P2: nothing that may be a lock is given back while a process of the service may be alive, or while a term outlasts its session, though the
// service is removed. One that is removed when an upgrade is asked for leaves at once: what follows may forget it.
func TestARemovedServiceLeavesOnlyWhatItMay(t *testing.T) {
	undying := func(v *Service) {
		v.state.TreeUnproved, v.unprovedTree = true, unprovedTree{tree: &endingTree{err: box.ErrUnproved}, epoch: 1}
	}
	for name, c := range map[string]struct {
		before func(v *Service) // it serves; nil: it is removed while it serves
		then   func(v *Service)
		cause  error
		leaves bool
	}{
		"nothing runs":                  {func(*Service) {}, nil, nil, true},
		"a process may be alive":        {undying, nil, nil, false},
		"a term outlasts the session":   {nil, func(v *Service) { v.carried = &CarriedTerm{until: 1} }, nil, false},
		"an upgrade":                    {func(*Service) {}, nil, ErrHandover, false},
		"an upgrade ends its candidacy": {nil, func(*Service) {}, ErrHandover, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			zk := newEnsemble(t)
			defer zk.server.Close()
			act := func() {}
			v := made(t, Conf{Service: config.Service{Election: "race"}}, func(n *LocalNode) {
				n.Guard = func() host.Guard { return interrupted{act: func() { act() }} }
			})
			zk.session(func(ctx context.Context, s *election.Session) error {
				previous, _, err := s.NewCandidate(ctx, v.name, election.Race)
				if err != nil {
					return err
				}
				free, err := previous.Wait(ctx)
				if err != nil {
					return err
				}
				zk.server.CloseAfter(zkfaults.Match{Op: jute.OpMulti})
				if claim, err := previous.Take(ctx, free, election.BreadCrumb{}); claim != nil || err != nil || !previous.MayHoldLock() {
					t.Errorf("%s: it is known what became of the claim: %v", name, err)
				}
				v.mem.place = previous.Carry()
				serving, stop := context.WithCancelCause(ctx)
				if act = func() { c.then(v); v.Remove(); stop(c.cause) }; c.before != nil {
					c.before(v)
					v.Remove()
					stop(c.cause)
				}
				leave, enough := context.WithTimeout(ctx, 10*time.Second)
				defer enough()
				_ = v.Serve(serving, Session{Session: s, Epoch: 1, Gate: gateOf(s), Leave: leave.Done()})
				if left := v.mem.place.Session == 0; left != c.leaves {
					t.Errorf("%s: it has left: %v", name, left)
				}
				now, _, err := s.NewCandidate(ctx, v.name, election.Race)
				if err != nil {
					return err
				}
				free, err = now.Wait(ctx)
				if err == nil && free.Ours() == c.leaves {
					t.Errorf("%s: the lock is still there: %v", name, free.Ours())
				}
				return err
			})
		})
	}
}

// busy has so many services announce themselves at once in a session whose requests take a while.
func (e *ensemble) busy(ctx context.Context, s *election.Session, services int, trip time.Duration) (over func()) {
	cand, _, err := s.NewCandidate(ctx, "another", election.Race)
	if err != nil {
		e.t.Fatal(err)
	}
	quick := e.server.Delay(zkfaults.Everyone, trip/2)
	busy, enough := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range services {
		wg.Go(func() {
			own := *cand.Members
			for busy.Err() == nil {
				_ = own.Announce(busy, election.Member{})
			}
		})
	}
	time.Sleep(time.Second)
	return func() {
		enough()
		wg.Wait()
		quick()
	}
}

// P1: nobody watches the lock of a term that ends, which waits until its entry in the history is written. So that waits for no turn.
func TestATermThatEndsWaitsForNoTurn(t *testing.T) {
	const trip = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		zk.session(func(ctx context.Context, s *election.Session) error {
			v := made(t, Conf{}, nil)
			cand, _, err := s.NewCandidate(ctx, v.name, election.Race)
			if err != nil {
				return err
			}
			defer zk.busy(ctx, s, 2000, trip)()
			term, end := context.WithCancel(ctx)
			done, written := make(chan struct{}), &entry{}
			go func() {
				defer close(done)
				v.history.recordStart(term, cand, written, config.Moves{})
			}()
			time.Sleep(settling + 5*trip)
			end()
			began := time.Now()
			<-done
			if took := time.Since(began); took > 2*trip {
				t.Errorf("it waits for %v", took)
			}
			if written.Entry != "" {
				t.Error("it is written: nothing was in its way")
			}
			return nil
		})
	})
}

// P1: nobody watches the lock of a term that goes on until its candidate is there, and others can take it when it is deleted by hand. The
// candidates of services that nothing runs of have no hurry.
func TestATermThatGoesOnWaitsForNoTurn(t *testing.T) {
	const trip = 100 * time.Millisecond
	for name, c := range map[string]struct {
		carried *CarriedTerm
		waits   bool
	}{
		"goes on":     {&CarriedTerm{}, false},
		"begins anew": {nil, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			zk := newEnsemble(t)
			defer zk.server.Close()
			zk.session(func(ctx context.Context, s *election.Session) error {
				defer zk.busy(ctx, s, 2000, trip)()
				v := made(t, Conf{Service: config.Service{Election: "race"}}, nil)
				v.carried = c.carried
				began := time.Now()
				if e := v.testStay(ctx, Session{Session: s, Leave: ctx.Done()}, &endingTree{}).Join(ctx); e.Kind != role.Joined {
					t.Errorf("%s: %v", name, e)
				}
				if took := time.Since(began); (took > 10*trip) != c.waits {
					t.Errorf("%s: a candidate after %v", name, took)
				}
				return nil
			})
		})
	}
}
