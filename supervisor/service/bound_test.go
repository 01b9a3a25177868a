package service

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/host"
	"understudy/supervisor/service/role"
)

// stalls is an observer that does not return once a service has a role.
type stalls struct {
	unobserved
	at   atomic.Pointer[election.Role]
	goOn chan struct{}
}

func (s *stalls) State(now control.LocalStatus) {
	if at := s.at.Load(); at != nil && now.Role == *at {
		<-s.goOn
	}
}

// P6: a service whose goroutine hangs does not count as one that waits.
func TestAHangIsNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk, guard := newEnsemble(t), prepares{made: make(chan time.Time, 1)}
		defer zk.server.Close()
		for _, at := range []election.Role{election.RoleStandby, election.RoleClaiming} {
			watching := &stalls{goOn: make(chan struct{})}
			v := made(t, Conf{Service: config.Service{Election: "race"}}, func(n *LocalNode) {
				n.Guard, n.Observer = func() host.Guard { return guard }, watching
			})
			if _, atMost := v.Step(); atMost != endless {
				t.Errorf("it does not serve yet, and may take %v", atMost)
			}
			watching.at.Store(&at)
			zk.served(v, func() {
				if at == election.RoleClaiming {
					guard.next(t)
				}
				synctest.Wait()
				before, atMost := v.Step()
				time.Sleep(time.Minute)
				if after, _ := v.Step(); atMost != 0 || after != before {
					t.Errorf("%s: it moves, or may take %v", at, atMost)
				}
				close(watching.goOn)
				watching.at.Store(nil)
			})
			if _, atMost := v.Step(); atMost != endless {
				t.Errorf("it serves no more, and may take %v", atMost)
			}
		}
	})
}

// P6: programs may run for any time, and whoever decides has to move once they have ended.
func TestTheEndOfProgramsCountsAsAStep(t *testing.T) {
	v, over := made(t, Conf{}, nil), make(chan struct{})
	v.step.Store(&step{endless, over})
	before, atMost := v.Step()
	if same, _ := v.Step(); atMost != endless || same != before {
		t.Errorf("while they run it has moved, or may take %v", atMost)
	}
	close(over)
	after, atMost := v.Step()
	if same, _ := v.Step(); atMost != windUp || after == before || same != after {
		t.Errorf("after their end it may take %v, has not moved before that, or has after that", atMost)
	}
}

// P6: what fences has an end, and is given the time that its methods and delays may take.
func TestAFencingHasTheTimeOfItsMethods(t *testing.T) {
	conf := Conf{Service: config.Service{GraceDelay: time.Hour}, Fence: []fencing.Step{{Timeout: time.Minute}, {Timeout: time.Minute}}}
	stay := made(t, conf, nil).testStay(t.Context(), Session{Session: &election.Session{}}, nil)
	stay.term.claim = &election.Claim{}
	if d := stay.bound(role.Fencing); d < time.Hour+4*time.Minute || d == endless {
		t.Errorf("it may take %v", d)
	}
}
