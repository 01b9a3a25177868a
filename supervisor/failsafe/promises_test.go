package failsafe

import (
	"errors"
	"testing"
	"time"

	"understudy/election"
	"understudy/fencing/agent"
)

const aLease = 3 * time.Second

var asks = agent.PromiseRequest{Service: "db", Token: 41, By: "a", Of: "b", For: election.PromiseLength(aLease)}

// A node promises if it sees no ensemble and does not start the service itself; from then on it is bound.
func TestPromiseIsGivenOnlyByWhoCanKeepIt(t *testing.T) {
	p := NewPromises()
	p.Acked(100*time.Second, aLease)
	if err := p.Give(asks, 101*time.Second); err == nil || p.Bound("db") != 0 {
		t.Error("promised though ZooKeeper was there a second ago")
	}
	p.Engage("db")
	if err := p.Give(asks, 110*time.Second); err == nil || p.Bound("db") != 0 {
		t.Error("promised what may be started here")
	}
	p.Disengage("db")
	if err := p.Give(asks, 110*time.Second); err != nil || p.Bound("db") != 116*time.Second {
		t.Errorf("bound until %v: %v", p.Bound("db"), err)
	}
	shorter := asks
	shorter.For = time.Second
	if err := p.Give(shorter, 111*time.Second); err != nil || p.Bound("db") != 116*time.Second {
		t.Errorf("a shorter promise: bound until %v: %v", p.Bound("db"), err)
	}
	if p.Bound("web") != 0 {
		t.Error("bound for another service")
	}
}

// P1: the proof of a death makes a promise needless that the dead term was given, and no other one.
func TestAPromiseToAnotherTermBinds(t *testing.T) {
	p, later := NewPromises(), asks
	later.Token, later.For = 57, time.Second
	if err := errors.Join(p.Give(asks, 110*time.Second), p.Give(later, 111*time.Second)); err != nil {
		t.Fatal(err)
	}
	for dead, want := range map[int64]time.Duration{0: 116 * time.Second, 41: 112 * time.Second, 57: 116 * time.Second, 12: 116 * time.Second} {
		if until := p.BoundBesides("db", dead); until != want {
			t.Errorf("once %d is dead: bound until %v, want %v", dead, until, want)
		}
	}
}

// Promises of the previous supervisor bind this one, in full, from when it began to listen. A node that is not in the list was never asked:
// no delay is a proof for it.
func TestPreviousPromisesBind(t *testing.T) {
	me, p := election.Peer{Node: "b", Machine: "m-b", Agent: "b:1"}, NewPromises()
	plain := &election.BreadCrumb{LeaseMs: aLease.Milliseconds()}
	listed := &election.BreadCrumb{LeaseMs: aLease.Milliseconds(), Failsafe: &election.Failsafe{Members: []election.Peer{me}}}
	if _, err := p.Binding("db", me, listed); !errors.Is(err, ErrUnlisted) {
		t.Errorf("nobody listens here yet, so another may be promising: %v", err)
	}
	p.Listening(50 * time.Second)
	if until, err := p.Binding("db", me, listed); err != nil || until != 56*time.Second {
		t.Errorf("bound until %v: %v", until, err)
	}
	if until, err := p.Binding("db", me, plain); err != nil || until != 0 {
		t.Errorf("without failsafe: bound until %v: %v", until, err)
	}
	if err := p.Give(asks, 60*time.Second); err != nil {
		t.Fatal(err)
	}
	for name, crumb := range map[string]*election.BreadCrumb{"failsafe": listed, "plain": plain} {
		if until, err := p.Binding("db", me, crumb); err != nil || until != 66*time.Second {
			t.Errorf("%s: bound until %v: %v", name, until, err)
		}
	}
	for name, other := range map[string]election.Peer{
		"another node": {Node: "c", Machine: "m-b", Agent: "b:1"}, "another machine": {Node: "b", Machine: "m-c", Agent: "b:1"},
		"another address": {Node: "b", Machine: "m-b", Agent: "c:1"}, "no machine": {Node: "b", Agent: "b:1"},
	} {
		crumb := &election.BreadCrumb{LeaseMs: aLease.Milliseconds(), Failsafe: &election.Failsafe{Members: []election.Peer{other}}}
		if _, err := p.Binding("db", me, crumb); !errors.Is(err, ErrUnlisted) {
			t.Errorf("%s is taken for this one: %v", name, err)
		}
	}
}
