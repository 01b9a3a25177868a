package service

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/child/box"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
)

// Each line here that a promise rests on, and that no other test of this package misses, is driven by a stay on a ZooKeeper in memory.

// take takes the lock for a tree of endingTree.
func (e *ensemble) take(ctx context.Context, s *election.Session) (*election.Candidate, *election.Claim) {
	e.t.Helper()
	c, _, err := s.NewCandidate(ctx, "db", election.Race)
	if err != nil {
		e.t.Fatal(err)
	}
	o, err := c.Wait(ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	claim, err := c.Take(ctx, o, election.BreadCrumb{Tree: json.RawMessage(`{"tree":1}`)})
	if err != nil {
		e.t.Fatal(err)
	}
	return c, claim
}

// crumb reads the service's record.
func (e *ensemble) crumb() (crumb election.BreadCrumb) {
	e.t.Helper()
	e.connected(func(conn *zk.Conn) error {
		data, _, err := conn.Get(election.Paths{Root: "/understudy", Service: "db"}.Crumb())
		if err == nil {
			crumb, err = election.ReadBreadCrumb(data)
		}
		return err
	})
	return crumb
}

// after is a term of this node, b being the active node before; change may add to the service.
func (e *ensemble) after(conf Conf, change func(*LocalNode), do func(ctx context.Context, t *stay)) {
	e.t.Helper()
	here := e.self
	e.self = election.Node{Node: "b", Host: "b", Machine: "m2", Boot: "b2"}
	e.session(func(ctx context.Context, s *election.Session) error {
		_, claim := e.take(ctx, s)
		return claim.Inscribe(ctx)
	})
	e.self = here
	e.session(func(ctx context.Context, s *election.Session) error {
		v := made(e.t, conf, func(n *LocalNode) {
			n.Machine = clock{began: e.began}
			if change != nil {
				change(n)
			}
		})
		stay := v.testStay(ctx, Session{Session: s}, &endingTree{})
		stay.candidacy.cand, stay.term.claim = e.take(ctx, s)
		do(ctx, stay)
		return nil
	})
}

// failing is a method that proves nothing.
type failing struct{ error }

func (failing) Name() string { return "failing" }

func (f failing) Fence(context.Context, fencing.Target) error { return f.error }

func fencedBy(m fencing.Method) (conf Conf) {
	conf.Fence = []fencing.Step{{Method: m, Timeout: time.Minute}}
	conf.Fencing.OnFailure = config.OnFailureRefuse
	return conf
}

// P5: what a fencing has seen alive, or not undone, is in the record before another node can claim, to which it may be out of sight.
func TestWhatAFencingHasSeenIsInTheRecord(t *testing.T) {
	for name, seen := range map[string]error{"alive": fencing.ErrAlive, "not undone": &fencing.NotUndone{Names: []string{"vip"}}} {
		synctest.Test(t, func(t *testing.T) {
			zk := newEnsemble(t)
			defer zk.server.Close()
			zk.after(fencedBy(failing{seen}), nil, func(ctx context.Context, stay *stay) {
				if e := stay.Fence(ctx); e != (role.Event{Kind: role.PreviousAlive, BackOffUntilProof: true}) {
					t.Errorf("%s: %+v", name, e)
				}
				alive := name == "alive"
				if got := zk.crumb(); got.Leftover.Known != alive || slices.Equal(got.Left, []string{"vip"}) == alive {
					t.Errorf("%s: the record says %+v, %v", name, got.Leftover, got.Left)
				}
			})
		})
	}
}

// P1: a proved death of the previous active is not enough where this machine still runs what an earlier supervisor of it has left.
func TestAFencingLooksAtItsOwnMachineLast(t *testing.T) {
	for _, left := range []*box.Leftover{nil, {Pid: 7, Program: "db"}} {
		synctest.Test(t, func(t *testing.T) {
			zk := newEnsemble(t)
			defer zk.server.Close()
			guard := haunted{left: func() *box.Leftover { return left }}
			zk.after(fencedBy(failing{}), func(n *LocalNode) { n.Guard = func() host.Guard { return guard } }, func(ctx context.Context, stay *stay) {
				want := role.PreviousDead
				if left != nil {
					want = role.PreviousAlive
				}
				if e := stay.Fence(ctx); e.Kind != want {
					t.Errorf("left %v: %v", left, e.Kind)
				}
			})
		})
	}
}

// P1: whoever loses the lock kills at once. P5: what is not dead then is in the record before the next node's delay is over.
func TestALostLockCutsTheTreeAndSaysWhatLives(t *testing.T) {
	for _, err := range []error{nil, box.ErrUnproved} {
		synctest.Test(t, func(t *testing.T) {
			zk := newEnsemble(t)
			defer zk.server.Close()
			zk.session(func(ctx context.Context, s *election.Session) error {
				cand, claim := zk.take(ctx, s)
				if err := claim.Inscribe(ctx); err != nil {
					return err
				}
				tree := &endingTree{err: err}
				made(t, Conf{}, nil).breadcrumb.killNow(ctx, cand, tree)
				if lives := errors.Is(err, box.ErrUnproved); tree.ended == 0 || zk.crumb().Leftover.Known != lives {
					t.Errorf("%v: it was ended %d times, and the record says %+v", err, tree.ended, zk.crumb().Leftover)
				}
				return nil
			})
		})
	}
}
