package service

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/child/box"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

// handedOn is a stay whose term was handed over, and goes on until run reports something.
type handedOn struct {
	*stay
	run      func() role.Event
	released func()
}

func (h handedOn) Joined(context.Context)             {}
func (h handedOn) Parted(context.Context, role.State) {}
func (h handedOn) Join(context.Context) role.Event    { return role.Event{Kind: role.Joined} }
func (h handedOn) Resume(context.Context) role.Event  { return role.Event{Kind: role.Resumed} }
func (h handedOn) Run(context.Context) role.Event     { return h.run() }
func (h handedOn) Retry(context.Context) role.Event   { return role.Event{Kind: role.StayOver} }
func (h handedOn) Record(context.Context) role.Event  { return role.Event{Kind: role.Recorded} }

func (h handedOn) Release(context.Context) role.Event {
	h.released()
	return role.Event{Kind: role.Released}
}

// An event that no action may report is logged as an error, and ends the term as the end of its lease does: nothing is given back without
// a proof.
func TestAnEventThatIsNotExpectedIsLoudAndEndsTheTermWithProof(t *testing.T) {
	for name, err := range map[string]error{"it dies": nil, "it does not": box.ErrUnproved} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			var broken []error
			logger := hclog.New(&hclog.LoggerOptions{Output: &log})
			v := made(t, Conf{}, func(n *LocalNode) {
				n.Logger, n.Broken = logger, func(err error) { broken = append(broken, err) }
			})
			v.state.Carried = true
			sess, tree, released := &election.Session{}, &endingTree{err: err}, 0
			leave := make(chan struct{})
			close(leave)
			s := Session{Session: sess, Epoch: 2, Leave: leave, Gate: gateOf(sess)}
			h := handedOn{stay: newStay(t.Context(), v, s), released: func() {
				if released++; err != nil {
					t.Errorf("P2: %s: the lock was given back", name)
				}
			}}
			h.candidacy.tree = tree
			h.run = func() role.Event { return role.Event{Kind: role.Undone} }
			s2 := role.Drive(t.Context(), v.state, h)
			if len(broken) != 1 || !strings.Contains(broken[0].Error(), "Undone is not expected in Running") {
				t.Errorf("%s: told %v", name, broken)
			}
			if text := log.String(); !strings.Contains(text, "[ERROR] internal error (please report)") || !strings.Contains(text, "to=stopping reason=\"lease ending\"") {
				t.Errorf("%s: logged %s", name, text)
			}
			if tree.ended == 0 || (released == 1) != (err == nil) || s2.TreeUnproved != (err != nil) || s2.Cause != role.LeaseEnding {
				t.Errorf("%s: ended %d times, released %d times: %+v", name, tree.ended, released, s2)
			}
			if v.Unproved() == nil != (err == nil) {
				t.Errorf("%s: %v", name, v.Unproved())
			}
		})
	}
}

func gateOf(s *election.Session) *failsafe.Gate {
	return failsafe.NewGate(failsafe.Config{
		Session: s, Guardians: patient{}, Promises: failsafe.NewPromises(), Now: empty{}.Now, Log: hclog.NewNullLogger(),
	})
}

// patient are guardians that do as they are told.
type patient struct{}

func (patient) Extend(time.Duration) error { return nil }

// P2: a term that could not go on in this image before another one asks for it is handed on unchanged. If it has to end instead, it ends
// with proof, as any other.
func TestATermThatHasNotGoneOnYetIsHandedOnOrEnded(t *testing.T) {
	for why, want := range map[error]role.EventKind{ErrHandover: role.HandAsked, context.Canceled: role.StopAsked} {
		synctest.Test(t, func(t *testing.T) {
			v, tree := made(t, Conf{}, nil), &endingTree{}
			v.Remember(CarriedService{State: role.State{Carried: true}, Term: &CarriedTerm{
				Claim: election.CarriedClaim{Crumb: json.RawMessage(`{}`)}, Run: &unit.CarriedRun{}, tree: tree,
			}})
			gate := gateOf(&election.Session{})
			stay := v.testStay(t.Context(), Session{Session: &election.Session{}, Epoch: 1, Gate: gate}, tree)
			stay.candidacy.cand = &election.Candidate{}
			ctx, end := context.WithCancelCause(t.Context())
			unlock, _ := gate.TryPlain()
			go func() { _ = gate.Extend(time.Hour) }() // then the deadline is not ZooKeeper's own
			synctest.Wait()
			reported := make(chan role.Event, 1)
			go func() { reported <- stay.Resume(ctx) }()
			synctest.Wait()
			end(why)
			unlock()
			if e := <-reported; e.Kind != want || v.Carries() != (want == role.HandAsked) {
				t.Errorf("%v: %v, carries %v", why, e.Kind, v.Carries())
			}
		})
	}
}

// P1: of a term that cannot go on nobody watches the lock, so its session ends, and with that the lease.
func TestATermThatCannotGoOnEndsItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := newEnsemble(t)
		defer zk.server.Close()
		zk.session(func(ctx context.Context, sess *election.Session) error {
			v, tree := made(t, Conf{}, nil), &endingTree{}
			v.Remember(CarriedService{State: role.State{Carried: true}, Term: &CarriedTerm{
				Claim: election.CarriedClaim{Crumb: json.RawMessage(`{`)}, Run: &unit.CarriedRun{}, tree: tree,
			}})
			stay := v.testStay(ctx, Session{Session: sess, Epoch: 1, Gate: gateOf(sess)}, &endingTree{})
			stay.candidacy.cand = &election.Candidate{}
			if e := stay.Resume(ctx); e.Kind != role.CannotResume || v.Carries() || stay.candidacy.tree != tree {
				t.Errorf("%v; it still carries a term: %v", e.Kind, v.Carries())
			}
			if ctx.Err() == nil {
				t.Error("its session goes on")
			}
			return nil
		})
	})
}
