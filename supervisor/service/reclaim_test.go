package service

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/election/jute"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
	"understudy/supervisor/testbed/zkfaults"
	"understudy/supervisor/unit"
)

// moving is a tree whose Move takes place while something happens, and fails.
type moving struct {
	host.Tree
	meanwhile func()
	why       error // of the end of its context, after that
}

var errNotMoved = errors.New("not moved")

func (m *moving) ID() (json.RawMessage, error) { return json.RawMessage(`{}`), nil }

func (m *moving) Move(ctx context.Context, _ uint64, _ []byte) error {
	m.meanwhile()
	synctest.Wait()
	m.why = context.Cause(ctx)
	return errNotMoved
}

// P7: an upgrade that is asked for meanwhile waits until it is decided whether the lock is taken again.
func TestAnUpgradeWaitsForALockThatIsBeingTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		zk.session(func(ctx context.Context, s *election.Session) error {
			for why, ends := range map[error]bool{ErrHandover: false, errors.New("stop"): true} {
				v := made(t, Conf{}, nil)
				now := v.node.Machine.Now
				gate := failsafe.NewGate(failsafe.Config{Session: s, Now: now})
				gate.Cover(v.Term(), now()+2*time.Hour)
				ctx, cancel := context.WithCancelCause(ctx)
				tree := &moving{meanwhile: func() { cancel(why) }}
				stay := v.testStay(ctx, Session{Session: s, Gate: gate}, tree)
				var err error
				stay.candidacy.cand, _, err = s.NewCandidate(t.Context(), "db", election.Race)
				if err != nil {
					return err
				}
				if err := stay.term.takeAgain(ctx, nil); !errors.Is(err, errNotMoved) || (tree.why != nil) != ends {
					t.Errorf("%v: %v, %v", why, err, tree.why)
				}
			}
			return nil
		})
	})
}

// P1: where ZooKeeper has lost data, whoever has claimed meanwhile may be lost with it. The programs keep the lease of their own session.
func TestNoLockIsTakenAgainInLostData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		zk.session(func(ctx context.Context, s *election.Session) error {
			v := made(t, Conf{}, nil)
			gate := failsafe.NewGate(failsafe.Config{Session: s, Now: v.node.Machine.Now})
			gate.Cover(v.Term(), v.node.Machine.Now()+2*time.Hour)
			for _, lost := range []bool{true, false} {
				moved := false
				stay := v.testStay(ctx, Session{Session: s, Gate: gate}, &moving{meanwhile: func() { moved = true }})
				var err error
				stay.candidacy.cand, _, err = s.NewCandidate(ctx, "db", election.Race)
				if err != nil {
					return err
				}
				v.state.QuarantineDue = lost
				if err := stay.term.takeAgain(ctx, nil); moved == lost || errors.Is(err, errLostData) != lost {
					t.Errorf("lost: %v; the tree is moved: %v, %v", lost, moved, err)
				}
			}
			return nil
		})
	})
}

// readyTree is a tree that is moved at once.
type readyTree struct{ host.Tree }

func (readyTree) ID() (json.RawMessage, error)               { return json.RawMessage(`{"tree":1}`), nil }
func (readyTree) Move(context.Context, uint64, []byte) error { return nil }

// P1: a lock that may be ours, and that nobody watches, goes with its session.
func TestALockThatMayBeOursEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		var left election.CarriedClaim
		zk.session(func(ctx context.Context, s *election.Session) (err error) {
			_, claim := zk.take(ctx, s)
			if err := claim.Inscribe(ctx); err != nil {
				return err
			}
			left, err = claim.Carry()
			return err
		})
		zk.session(func(ctx context.Context, s *election.Session) (err error) {
			v := made(t, Conf{}, func(n *LocalNode) { n.Machine = clock{began: zk.began} })
			gate := failsafe.NewGate(failsafe.Config{Session: s, Now: v.node.Machine.Now})
			gate.Cover(v.Term(), v.node.Machine.Now()+time.Second)
			stay := v.testStay(ctx, Session{Session: s, Gate: gate, Moved: func() {}}, readyTree{})
			stay.candidacy.cand, _, err = s.NewCandidate(ctx, "db", election.Race)
			if err != nil {
				return err
			}
			stay.candidacy.decided = make(chan struct{})
			v.carried = &CarriedTerm{Claim: left, Run: &unit.CarriedRun{}, tree: readyTree{}}
			before := zk.server.Requests()[jute.OpMulti]
			zk.server.LoseReply(zkfaults.Match{Op: jute.OpMulti})
			go func() {
				for zk.server.Requests()[jute.OpMulti] == before {
					time.Sleep(time.Microsecond)
				}
				zk.server.Down()
			}()
			if e := stay.reclaim(ctx); e.Kind != role.CannotResume || ctx.Err() == nil {
				t.Errorf("%v; its session is over: %v", e.Kind, ctx.Err())
			}
			zk.server.Up()
			return nil
		})
	})
}
