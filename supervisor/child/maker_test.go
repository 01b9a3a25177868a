package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/testbed/must"
)

// deadMaker is a supervisor that never was.
func deadMaker(t *testing.T, place box.Container) box.Maker {
	t.Helper()
	m, err := place.Maker()
	must.OK(t, err)
	m.Pid = 1 << 30
	return m
}

func endAllSoon(t *testing.T, m box.Maker) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	return m.EndAll(ctx)
}

// P2: the trees of a supervisor that is gone are ended, those of others are not. One that cannot be ended is not proved dead.
func TestAllTreesOfASupervisorThatIsGoneAreEnded(t *testing.T) {
	place, host := boxed(t)
	m := deadMaker(t, place)
	one := leftBehind(t, place.Base, m.Pid, m.StartTime, host.PidNS)
	two := leftBehindAs(t, place.Base, "n.other.s0123456789abcdef", m.Pid, m.StartTime, host.PidNS)
	foreign := leftBehind(t, place.Base, m.Pid, m.StartTime+1, host.PidNS)
	_, letGo := hold(t, onlyPid(t, two))
	if err := endAllSoon(t, m); !errors.Is(err, box.ErrUnproved) {
		t.Errorf("a process cannot be killed: %v", err)
	}
	letGo()
	must.Report(t, endAllSoon(t, m))
	for path, stays := range map[string]bool{one: false, two: false, foreign: true} {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// P2: nothing is proved, and nothing is killed, of a supervisor that lives, or that this process cannot see.
func TestNoTreeIsEndedOfASupervisorThatLivesOrIsElsewhere(t *testing.T) {
	place, host := boxed(t)
	dead := deadMaker(t, place)
	path := leftBehind(t, place.Base, dead.Pid, dead.StartTime, host.PidNS)
	for name, c := range map[string]struct {
		change func(*box.Maker)
		want   error
	}{
		"it lives":                     {func(m *box.Maker) { m.Pid = os.Getpid() }, box.ErrSupervised},
		"of another boot":              {func(m *box.Maker) { m.Boot = "another" }, box.ErrElsewhere},
		"of another container":         {func(m *box.Maker) { m.PidNS++ }, box.ErrElsewhere},
		"among other cgroups":          {func(m *box.Maker) { m.Inode++ }, box.ErrElsewhere},
		"of a cgroup without a number": {func(m *box.Maker) { m.Inode = 0 }, box.ErrElsewhere},
		"outside of all cgroups":       {func(m *box.Maker) { m.Path = "/tmp/x" }, box.ErrElsewhere},
		"of a kind that is unknown":    {func(m *box.Maker) { m.Kind = "jail" }, box.ErrElsewhere},
		"of walked trees":              {func(m *box.Maker) { m.Kind = box.KindWalk }, box.ErrUnproved},
	} {
		m := dead
		c.change(&m)
		if err := endAllSoon(t, m); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	onlyPid(t, path) // it was not killed
}

// systemd removes the cgroup of a unit that is down, and makes another one for the next start. It has to be empty for that, but a process
// that has left it may live: only before that is there a proof.
func TestACgroupThatWasRemovedProvesNothing(t *testing.T) {
	place, _ := boxed(t)
	place.Base = filepath.Join(place.Base, "unit")
	var m box.Maker
	for _, want := range []error{nil, box.ErrElsewhere} {
		must.OK(t, os.Mkdir(place.Base, 0o755))
		if want == nil {
			m = deadMaker(t, place)
		}
		if err := endAllSoon(t, m); !errors.Is(err, want) {
			t.Errorf("%v instead of %v", err, want)
		}
		must.OK(t, os.Remove(place.Base))
	}
	if err := endAllSoon(t, m); !errors.Is(err, box.ErrElsewhere) {
		t.Errorf("there is none: %v", err)
	}
}

// The inits of its PID namespaces die with a supervisor. Until they have, nothing is proved; those of another supervisor do not matter.
func TestTreesInPidNamespacesAreDeadOnceTheirInitsAre(t *testing.T) {
	needKind(t, box.KindPidNS)
	p := newPuppet(t, box.KindPidNS)
	p.do(command{Do: "begin", Epoch: 1})
	p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
	id := p.do(command{Do: "tree", Epoch: 1, Name: "a"}).ID
	p.do(command{Do: "start", Name: "a", Script: "echo ready; exec sleep 1000"})
	p.ready()
	m := deadMaker(t, box.Container{Kind: box.KindPidNS})
	if err := endAllSoon(t, m); err != nil {
		t.Errorf("another supervisor's program runs: %v", err)
	}
	m.Pid, m.StartTime = id.Pid, id.StartTime
	if err := endAllSoon(t, m); !errors.Is(err, box.ErrSupervised) {
		t.Errorf("it runs: %v", err)
	}
	held, err := m.Stub()
	if err != nil || held == 0 {
		t.Errorf("its init is not found: %d %v", held, err)
	}
	kill9(append(p.guardians(), p.cmd.Process.Pid)...)
	awaitDeath(t, p.cmd.Process.Pid)
	must.Report(t, m.EndAll(t.Context()))
	if err := unix.Kill(held, 0); err == nil {
		if s, err := box.StatOf(held); err == nil && s.Alive() {
			t.Error("its init lives")
		}
	}
	fakeStub(t, box.StubMark+"0123456789", ofAContainer) // as of a version that does not say for whom
	if err := endAllSoon(t, m); !errors.Is(err, box.ErrUnproved) {
		t.Errorf("an init may be its own: %v", err)
	}
	m.UserNS++
	if err := endAllSoon(t, m); !errors.Is(err, box.ErrElsewhere) {
		t.Errorf("users mean something else: %v", err)
	}
}

// P2: that nothing is at the path of a cgroup proves nothing as long as the kernel has the cgroup.
func TestAMissingPathIsNoCgroupThatWasRemoved(t *testing.T) {
	need.These(t, box.KindCgroup)
	tree := planted(t, guarded(t, box.KindCgroup))
	_, r := started(t, tree, "echo ready; exec sleep 1000")
	await(t, r, "ready")
	path := tree.cgroup.Path
	tree.cgroup.Path += ".gone"
	if err := tree.cgroup.Remove(); !errors.Is(err, box.ErrUnproved) {
		t.Errorf("removed: %v", err)
	}
	tree.cgroup.Path = path
}
