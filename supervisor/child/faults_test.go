package child

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/testbed/must"
)

func itoa(i int) string { return strconv.Itoa(i) }

// stubborn ignores what can be ignored, double-forks, and leaves daemons in sessions of their own.
const stubborn = `trap "" TERM HUP INT
for i in 1 2 3; do (setsid sh -c 'trap "" TERM HUP; sleep 1000 & (setsid sleep 1000 &) ; sleep 1000' &); sleep 1000 & done
echo ready; while :; do sleep 1000; done`

// diesAndCloses checks that everything dies, and that the session is closed after that and not before.
func (p *puppet) diesAndCloses(since time.Duration) {
	p.t.Helper()
	at := p.dead()
	c := p.closing()
	p.t.Logf("dead after %v, session closed after %v", at-since, c.At-since)
	if c.Alive || !c.AllDead || !slices.Equal(c.Releases, []string{"a"}) {
		p.t.Errorf("the session was closed too early or with the wrong releases: %+v", c)
	}
	if _, err := os.Stat(p.cgroup); p.container.Kind == box.KindCgroup && err == nil {
		p.t.Error("the session was closed before the cgroup was removed")
	}
	if took := at - since; took > patience {
		p.t.Errorf("the tree died only after %v", took)
	}
}

// P4: whoever of the three is killed, and in whatever order, the tree dies, unless it is one guardian alone.
func TestTreeDiesWithItsSupervisorAndAnyOtherOfTheThree(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		for name, order := range map[string][]int{
			"supervisor":                  {0},
			"supervisor, first guardian":  {0, 1},
			"supervisor, second guardian": {0, 2},
			"first guardian, supervisor":  {1, 0},
			"second guardian, supervisor": {2, 0},
		} {
			t.Run(name, func(t *testing.T) {
				p := newPuppet(t, kind)
				p.raise(time.Minute, stubborn)
				three := append([]int{p.cmd.Process.Pid}, p.guardians()...)
				since := wire.Now()
				for _, i := range order {
					kill9(three[i])
				}
				p.diesAndCloses(since)
			})
		}
	})
}

// P4: of all three only where the kernel or the stub notices. In either case without help from those that died before.
func TestTreeDiesWithAllThree(t *testing.T) {
	for _, kind := range []string{box.KindPidNS, box.KindWalk} {
		t.Run(kind, func(t *testing.T) {
			needKind(t, kind)
			p := newPuppet(t, kind)
			p.raise(time.Minute, stubborn)
			guardians := p.guardians()
			freeze(t, p.cmd.Process.Pid)
			if kind == box.KindPidNS { // the death signal alone has to do
				p.holdSockets()
			}
			kill9(guardians...)
			awaitDeath(t, guardians...)
			p.lives()
			since := wire.Now()
			kill9(p.cmd.Process.Pid)
			t.Logf("dead after %v", p.dead()-since)
		})
	}
}

// holdSockets keeps copies of all the supervisor's descriptors, so that its death closes none of them.
func (p *puppet) holdSockets() {
	p.t.Helper()
	held, err := unix.PidfdOpen(p.cmd.Process.Pid, 0)
	must.OK(p.t, err)
	p.t.Cleanup(func() { _ = unix.Close(held) })
	copies := 0
	for fd := 3; fd < 64; fd++ {
		if copied, err := unix.PidfdGetfd(held, fd, 0); err == nil {
			copies++
			p.t.Cleanup(func() { _ = unix.Close(copied) })
		}
	}
	if copies < 2 {
		p.t.Fatalf("only %d descriptors", copies)
	}
}

// P7: losing one guardian is noticed by nobody.
func TestGuardianIsReplacedAndTheProgramUntouched(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		for index := range 2 {
			t.Run(itoa(index+1), func(t *testing.T) {
				p := newPuppet(t, kind)
				pid, _ := p.raise(time.Minute, stubborn)
				before := p.guardians()
				kill9(before[index])
				p.do(command{Do: "tree", Epoch: 1, Name: "b"}) // needs both
				after := p.guardians()
				if after[index] == 0 || after[index] == before[index] || after[1-index] != before[1-index] {
					t.Fatalf("guardians were %v, are %v", before, after)
				}
				if s, err := box.StatOf(pid); err != nil || !s.Alive() {
					t.Fatalf("the program is gone: %v", err)
				}
				p.lives()
				p.do(command{Do: "end", Name: "b"})
				// The new one knows everything: it is the only one left.
				since := wire.Now()
				kill9(p.cmd.Process.Pid, after[1-index])
				p.diesAndCloses(since)
			})
		}
	})
}

// P4: for a moment there is nobody to watch the supervisor, so nothing may run.
func TestBothGuardiansLostEndsEverythingAndStartsAfresh(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		p := newPuppet(t, kind)
		p.raise(time.Minute, stubborn)
		before := p.guardians()
		// Frozen meanwhile, so that it finds both gone: else it might replace the one before the other one dies.
		freeze(t, p.cmd.Process.Pid)
		kill9(before...)
		awaitDeath(t, before...)
		since := wire.Now()
		must.OK(t, unix.Kill(p.cmd.Process.Pid, unix.SIGCONT))
		t.Logf("dead after %v", p.dead()-since)
		p.order(command{Do: "over", Epoch: 1})
		if r := p.hear(); !r.Lost {
			t.Fatalf("the epoch's end was not told: %+v", r)
		}
		p.do(command{Do: "end", Name: "a"})
		p.do(command{Do: "finish", Epoch: 1})
		p.do(command{Do: "begin", Epoch: 2})
		p.do(command{Do: "extend", Epoch: 2, In: time.Minute})
		p.do(command{Do: "tree", Epoch: 2, Name: "a"})
		p.do(command{Do: "start", Name: "a", Script: stubborn})
		p.ready()
		since = wire.Now()
		after := p.guardians()
		kill9(p.cmd.Process.Pid, after[0])
		p.diesAndCloses(since)
	})
}

// P3: a frozen supervisor's tree is dead at the lease's end, and stays dead when it thaws.
func TestFrozenSupervisorLosesItsTreeAtTheDeadline(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		p := newPuppet(t, kind)
		_, deadline := p.raise(3*time.Second, stubborn) // by then it is up, on a busy machine too
		freeze(t, p.cmd.Process.Pid)
		if at := p.dead(); at < deadline || at > deadline+stall {
			t.Errorf("dead %v after the deadline", at-deadline)
		} else {
			t.Logf("dead %v after the deadline", at-deadline)
		}
		if c := p.closing(); c.Alive || !c.AllDead || !slices.Equal(c.Releases, []string{"a"}) {
			t.Errorf("closed too early or with the wrong releases: %+v", c)
		}
		must.OK(t, unix.Kill(p.cmd.Process.Pid, unix.SIGCONT))
		for _, c := range []command{
			{Do: "extend", Epoch: 1, In: time.Minute},
			{Do: "start", Name: "a", Script: stubborn},
			{Do: "tree", Epoch: 1, Name: "b"},
			{Do: "over", Epoch: 1},
		} {
			p.order(c)
			if r := p.hear(); !r.Ended {
				t.Errorf("%s after the lease's end: %+v", c.Do, r)
			}
		}
		p.do(command{Do: "end", Name: "a"})
		p.do(command{Do: "finish", Epoch: 1})
	})
}

// P4: with the supervisor frozen and its twin dead a guardian is alone, and one more fault would be one too many.
func TestGuardianWhoseTwinIsNotReplacedEndsEverything(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		p := newPuppet(t, kind)
		p.raise(time.Minute, stubborn)
		freeze(t, p.cmd.Process.Pid)
		since := wire.Now()
		kill9(p.guardians()[0])
		if after := p.dead() - since; after < 900*time.Millisecond {
			t.Errorf("dead after %v", after)
		}
		if c := p.closing(); c.Alive || !c.AllDead {
			t.Errorf("closed too early: %+v", c)
		}
	})
}

// P3: the last look at the lease and the fork are two moments, and any time may pass between them.
func TestForkAfterAFreezeFails(t *testing.T) {
	kindsInTurn(t, func(t *testing.T, kind string) {
		for name, settings := range map[string]inside.Settings{"at once": {}, "with settings": {Umask: new(uint32)}} {
			t.Run(name, func(t *testing.T) {
				p := newPuppet(t, kind)
				p.do(command{Do: "begin", Epoch: 1})
				p.do(command{Do: "freeze"})
				p.do(command{Do: "tree", Epoch: 1, Name: "a"})
				p.do(command{Do: "extend", Epoch: 1, In: 400 * time.Millisecond})
				p.order(command{Do: "start", Name: "a", Script: "echo ready; sleep 1000", Settings: settings})
				if c := p.closing(); !c.AllDead {
					t.Errorf("closed with something alive: %+v", c)
				}
				must.OK(t, unix.Kill(p.cmd.Process.Pid, unix.SIGCONT))
				if r := p.hear(); !r.Ended {
					t.Fatalf("a program was started after the lease's end: %+v", r)
				}
				p.dead()
			})
		}
	})
}

// P4: one guardian that is stopped does not keep the other one from its work.
func TestStoppedGuardianDoesNotMatter(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		for index := range 2 {
			t.Run(itoa(index+1), func(t *testing.T) {
				p := newPuppet(t, kind)
				p.raise(time.Minute, stubborn)
				freeze(t, p.guardians()[index])
				since := wire.Now()
				guardians := p.guardians()
				kill9(p.cmd.Process.Pid)
				p.diesAndCloses(since)
				kill9(guardians[index])
			})
		}
	})
}

// P4: a guardian that does not answer is no guardian.
func TestStoppedGuardianIsReplaced(t *testing.T) {
	t.Parallel()
	need.These(t, box.KindCgroup)
	p := newPuppet(t, box.KindCgroup)
	p.raise(time.Minute, stubborn)
	before := p.guardians()
	freeze(t, before[0])
	p.do(command{Do: "tree", Epoch: 1, Name: "b"})
	if after := p.guardians(); after[0] == 0 || after[0] == before[0] {
		t.Fatalf("guardians were %v, are %v", before, after)
	}
	p.lives()
}

// awaitDeath waits until processes that are not ours to reap are dead.
func awaitDeath(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == unix.ESRCH {
			continue
		}
		must.OK(t, err)
		wire.PollOne(fd, unix.POLLIN, patience)
		if !wire.Readable(fd) {
			t.Fatalf("process %d lives", pid)
		}
		_ = unix.Close(fd)
	}
}

// P4: a copy of the supervisor's sockets in another process does not hide its death.
func TestSupervisorIsMissedThoughItsSocketsAreHeld(t *testing.T) {
	need.These(t, box.KindCgroup)
	p := newPuppet(t, box.KindCgroup)
	p.raise(time.Minute, stubborn)
	p.holdSockets()
	since := wire.Now()
	kill9(p.cmd.Process.Pid)
	p.diesAndCloses(since)
}
