package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/config"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// A node that lacks what the service needs is no candidate, and one again once that is there. It asks nothing while it is no candidate.
func TestANodeThatLacksSomethingDoesNotStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var lack atomic.Pointer[string]
		missing := "/no/such: no such file"
		lack.Store(&missing)
		node := &LocalNode{Lacks: func(config.Service) error {
			asked.Add(1)
			if why := lack.Load(); why != nil {
				return errors.New(*why)
			}
			return nil
		}}
		n := newInbox(node, Conf{Service: config.DefaultService("true")}, nil, nil)
		n.intents.known = true
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); n.precheck.checkOften(ctx) }()
		time.Sleep(time.Hour)
		if asked.Load() != 0 {
			t.Errorf("asked %d times without being a candidate", asked.Load())
		}
		conf := Conf{Service: config.DefaultService("true")}
		if _, obstacle, _ := n.obstacle(conf); obstacle != role.PrecheckUnknown {
			t.Errorf("obstacle %v before the first look", obstacle)
		}
		n.precheck.stand(true)
		synctest.Wait()
		if _, obstacle, why := n.obstacle(conf); obstacle != role.CannotStart || !strings.HasSuffix(why, missing) {
			t.Errorf("obstacle %v, %q", obstacle, why)
		}
		lack.Store(nil)
		time.Sleep(checkMissingEvery + time.Second)
		if _, obstacle, why := n.obstacle(conf); obstacle != role.NoObstacle {
			t.Errorf("obstacle %v, %q", obstacle, why)
		}
		cancel()
		<-done
	})
}

// stateDisk is where is noted how to undo what a service does.
type stateDisk struct {
	unit.Notes
	fault atomic.Pointer[error]
}

func (d *stateDisk) Try(bool) error {
	if fault := d.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}

// A node that cannot note how to undo what the service does could not start it: it does not stand until its disk works again, and says so.
func TestANodeWhoseStateDiskDoesNotAnswerDoesNotStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &stateDisk{}
		disk.fault.Store(&wait.ErrNoAnswer)
		conf := Conf{Service: config.DefaultService("true")}
		u := unit.New(unit.Config{Logger: hclog.NewNullLogger(), Notes: disk})
		n := newInbox(&LocalNode{Lacks: func(config.Service) error { return nil }}, conf, u, nil)
		n.intents.known = true
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); n.precheck.checkOften(ctx) }()
		n.precheck.stand(true)
		synctest.Wait()
		if _, obstacle, why := n.obstacle(conf); obstacle != role.NoObstacle {
			t.Errorf("nothing is to be undone: obstacle %v, %q", obstacle, why)
		}
		conf.Processes = slices.Clone(conf.Processes)
		conf.Processes[0].Oneshot, conf.Processes[0].Undo = true, config.Command{"true"}
		n.precheck.configure(conf.Service)
		time.Sleep(checkLacksEvery + time.Second)
		if _, obstacle, why := n.obstacle(conf); obstacle != role.CannotStart || why != "it could not start here: cannot note how to undo it: the file system does not answer" {
			t.Errorf("obstacle %v, %q", obstacle, why)
		}
		disk.fault.Store(nil)
		time.Sleep(checkDiskEvery + time.Second)
		if _, obstacle, why := n.obstacle(conf); obstacle != role.NoObstacle {
			t.Errorf("obstacle %v, %q", obstacle, why)
		}
		cancel()
		<-done
	})
}

// A file system that does not answer is no reason to stand back for good.
func TestAHungLookForWhatIsLackingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heal := make(chan struct{})
		defer close(heal)
		n := newInbox(&LocalNode{Lacks: func(config.Service) error { <-heal; return nil }}, Conf{Service: config.DefaultService("true")}, nil, nil)
		n.intents.known = true
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go n.precheck.checkOften(ctx)
		n.precheck.stand(true)
		time.Sleep(20 * time.Second)
		if _, obstacle, why := n.obstacle(Conf{Service: config.DefaultService("true")}); obstacle != role.NoObstacle {
			t.Errorf("obstacle %v, %q", obstacle, why)
		}
	})
}
