package e2e

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

// An operator who restores a service's folder raises its version, which numbers the claims. The child does not notice, and the lock
// is given back.
func TestAFolderWrittenByHandKeepsNoLock(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	a := p.Start(t, p.Lab.Machine(t, "a"))
	run := p.On(t, soon, "a", 0)
	dir := p.Path("services", p.Options.Service)
	data, _, err := p.Conn().Get(dir)
	must(t, err)
	_, err = p.Conn().Set(dir, data, -1)
	must(t, err)
	p.Untouched(t, run)
	a.Stop(t)
	p.Sync(t)
	if _, ok := p.Lock(p.Options.Service); ok || !p.NoBreadCrumb(p.Options.Service) {
		t.Error("lock or breadcrumb are there yet")
	}
}

// All of a service deleted under the only node that has it: it is made anew, and runs there again. SIGTERM is obeyed meanwhile.
func TestAServiceDeletedAsAWholeIsMadeAnew(t *testing.T) {
	t.Parallel()
	p := brief(t, stage(t))
	a := p.Start(t, p.Lab.Machine(t, "a"))
	p.On(t, soon, "a", 0)
	for range 2 {
		at := tick.Now()
		p.deleteAll(t, p.Path("services", p.Options.Service))
		p.On(t, soon+session+grace+5*time.Second, "a", at)
	}
	p.deleteAll(t, p.Path("services"))
	a.Stop(t)
}

// Whose lock ZooKeeper does not take back says so, keeps it, and is stopped all the same: with its session the lock goes.
func TestALockThatCannotBeGivenBackIsToldAndKeepsNoSupervisor(t *testing.T) {
	t.Parallel()
	p := newPlay(t, stage(t))
	a := p.Start(t, p.Lab.Machine(t, "a"))
	p.On(t, soon, "a", 0)
	_, err := p.Conn().SetACL(p.Path("services", p.Options.Service), zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)
	must(t, err)
	a.Signal(syscall.SIGTERM)
	kit.Until(t, soon, "it is told why", func() bool { return a.Says("cannot be given back", "not authenticated") })
	if code := a.ExitCode(t, 30*time.Second); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	p.Sync(t)
	if _, ok := p.Lock(p.Options.Service); ok {
		t.Error("the lock is there yet")
	}
}

// deleteAll is the command deleteall of ZooKeeper's shell.
func (p *play) deleteAll(t *testing.T, path string) {
	t.Helper()
	kit.Until(t, soon, path+" is deleted", func() bool {
		names, _, err := p.Conn().Children(path)
		if errors.Is(err, zk.ErrNoNode) {
			return true
		}
		must(t, err)
		for _, name := range names {
			p.deleteAll(t, path+"/"+name)
		}
		return p.Conn().Delete(path, -1) == nil
	})
}
