package service

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/host"
)

// stalls is an observer that does not return once a service has a role.
type stalls struct {
	unobserved
	at   atomic.Pointer[election.Role]
	goOn chan struct{}
}

func (s *stalls) State(now control.LocalStatus) {
	if at := s.at.Load(); at != nil && now.Role == *at {
		s.hangsHere()
	}
}

func (s *stalls) hangsHere() { <-s.goOn }

// P6: a service whose goroutine hangs does not count as one that waits; and its stack says where that is.
func TestAHangIsNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk, guard := newEnsemble(t), prepares{made: make(chan time.Time, 1)}
		defer zk.server.Close()
		for _, at := range []election.Role{election.RoleStandby, election.RoleClaiming} {
			watching := &stalls{goOn: make(chan struct{})}
			v := made(t, Conf{Service: config.Service{Election: "race"}}, func(n *LocalNode) {
				n.Guard, n.Observer = func() host.Guard { return guard }, watching
			})
			if _, patience := v.Pace(); patience != endless {
				t.Errorf("it does not serve yet, and may take %v", patience)
			}
			watching.at.Store(&at)
			zk.served(v, func() {
				if at == election.RoleClaiming {
					guard.next(t)
				}
				synctest.Wait()
				before, patience := v.Pace()
				time.Sleep(time.Minute)
				if after, _ := v.Pace(); patience != 0 || after != before {
					t.Errorf("%s: it moves, or waits for up to %v", at, patience)
				}
				if where, _, _ := strings.Cut(v.Stack(), "\n\n"); !strings.Contains(where, "hangsHere") {
					t.Errorf("%s: it is not where it hangs:\n%s", at, where)
				}
				close(watching.goOn)
				watching.at.Store(nil)
			})
			if _, patience := v.Pace(); patience != endless {
				t.Errorf("it serves no more, and may take %v", patience)
			}
		}
	})
}
