package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
)

// prepares is a guard that tells of each tree that is made for a candidate.
type prepares struct {
	haunted
	made chan time.Time
}

func (p prepares) NewTree(context.Context, uint64, string, []byte) (host.Tree, error) {
	p.made <- time.Now()
	return &grave{}, nil
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
		v := made(t, Conf{Service: config.Service{Election: "race", GraceDelay: 3 * time.Second}}, func(n *Node) { n.Guard = func() host.Guard { return guard } })
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
		v := made(t, conf, func(n *Node) { n.Guard = func() host.Guard { return guard } })
		v.state.Failed = true
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
