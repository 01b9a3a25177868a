package e2e

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

// queued waits until so many stand in the queue. A member may say that it stands by before it does so there.
func (p *play) queued(t *testing.T, n int) {
	t.Helper()
	kit.Until(t, soon, fmt.Sprint(n, " stand in the queue"), func() bool {
		names, _, err := p.Conn().Children(p.Path("services", p.Options.Service, "queue"))
		return (err == nil || n == 0) && len(names) == n
	})
}

// A candidate that fails says why; the next one says that it stands.
func TestACandidateThatFailedIsAnnouncedAgain(t *testing.T) {
	p := newPlay(t, stage(t))
	a, _ := p.Active(t, p.Lab.Machine(t, "a"))
	b := p.Lab.Machine(t, "b")
	file := p.Config(t, b, "", kit.Command(p.Child()), "election: queue")
	p.FromFile(t, b, file)
	p.Stands(t, b)
	p.queued(t, 1) // that was written, too
	let := func(perms int32) {
		t.Helper()
		_, err := p.Conn().SetACL(p.Path("services", p.Options.Service, "queue"), zk.WorldACL(perms), -1)
		must.OK(t, err)
	}
	let(zk.PermAll &^ zk.PermDelete)
	must.OK(t, os.Rename(p.Config(t, b, "", kit.Command(p.Child()), "election: race"), file))
	why := func() string { m, _ := p.Member(p.Options.Service, "b"); return m.Why }
	kit.Until(t, soon, "it says that it fails", func() bool { return strings.Contains(why(), "cannot take the service: leave the queue") })
	kit.Until(t, soon, "it has another candidate", func() bool { return why() == "" })
	p.Stands(t, b)
	a.Stop(t)
	p.On(t, soon, "b", 0)
}

// Whoever cannot take the lock, though nobody else has it, says that it stands by, and takes it as soon as it can.
func TestACandidateThatCannotTakeTheLockStandsBy(t *testing.T) {
	p := newPlay(t, stage(t))
	a, op := p.Lab.Machine(t, "a"), p.Lab.Host(t, "op")
	s := p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child())))
	p.On(t, soon, "a", 0)
	p.order(t, op, "pause", p.Options.Service)
	s.Kill9()
	at := tick.Now()
	kit.Until(t, soon, "its lock is gone", func() bool { _, held := p.Lock(p.Options.Service); return !held })
	p.FromFile(t, a, p.Config(t, a, "", kit.Command(p.Child())))
	p.Role(t, "a", "paused")
	dir := path.Join(p.Options.Root, "services", p.Options.Service)
	let := func(perms int32) {
		t.Helper()
		_, err := p.Conn().SetACL(dir, zk.WorldACL(perms), -1)
		must.OK(t, err)
	}
	let(zk.PermRead | zk.PermAdmin)
	p.order(t, op, "resume", p.Options.Service)
	kit.Until(t, soon, "it says that it fails", func() bool {
		m, ok := p.Member(p.Options.Service, "a")
		return ok && m.Role == "standby" && strings.Contains(m.Why, "create the lock")
	})
	let(zk.PermAll)
	p.On(t, soon, "a", at)
}
