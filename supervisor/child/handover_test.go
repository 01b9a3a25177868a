package child

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/reexec"
	"understudy/supervisor/testbed/must"
	"understudy/supervisor/wait"
)

func init() {
	if os.Args[0] == puppetRole {
		runtime.LockOSThread() // its main goroutine stays on the main thread
	}
}

// puppetHandover is what a puppet leaves to its next image.
type puppetHandover struct {
	Guard json.RawMessage
	Trees map[string]box.TreeID
	Last  map[string]int
}

func puppetBecomes(ctx context.Context, g *Guard, trees map[string]*Tree, last map[string]*Process, c command) error {
	err := puppetHandsOver(ctx, g, trees, last, c)
	for c.Do != "become now" && errors.Is(err, ErrBusy) && wait.For(ctx, time.Millisecond) { // what a start leaves under way ends by itself
		err = puppetHandsOver(ctx, g, trees, last, c)
	}
	return err
}

func puppetHandsOver(ctx context.Context, g *Guard, trees map[string]*Tree, last map[string]*Process, c command) error {
	leases := map[uint64]int{1: 0}
	for _, t := range trees {
		leases[t.guarded.Lease().Number]++
	}
	return g.HandOver(ctx, leases, func(guard json.RawMessage) error {
		left := puppetHandover{guard, map[string]box.TreeID{}, map[string]int{}}
		for name, t := range trees {
			left.Trees[name] = t.ID()
		}
		for name, p := range last {
			left.Last[name] = p.Pid()
		}
		raw, err := json.Marshal(left)
		if err != nil {
			return err
		}
		if c.Do == "become too late" {
			tooLate(g, trees)
		}
		if c.Do == "fail to become" {
			return reexec.Become("/no/such/binary", os.Args, os.Environ(), raw)
		}
		return reexec.Become("/proc/self/exe", os.Args, os.Environ(), raw)
	})
}

// tooLate ends a guardian and all programs after they have been handed over, and gives who reaps them the time for it.
func tooLate(g *Guard, trees map[string]*Tree) {
	pids := []int{g.guardians.at[1].pid}
	kill9(pids[0])
	for _, t := range trees {
		for _, p := range t.parts {
			kill9(p.proc.pid)
			if p.stub != nil {
				pids = append(pids, p.stub.Pid) // it ends then
			}
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for _, pid := range pids {
		for range 100 {
			if _, err := box.StatOf(pid); err != nil {
				break
			}
			<-tick.C
		}
	}
}

func puppetAdopts(ctx context.Context, cfg GuardConfig, raw []byte, trees map[string]*Tree, last map[string]*Process) (*Guard, error) {
	var left puppetHandover
	if err := json.Unmarshal(raw, &left); err != nil {
		return nil, err
	}
	g, err := AdoptGuard(ctx, cfg, left.Guard)
	if err != nil {
		return nil, err
	}
	for name, id := range left.Trees {
		t, ok := g.Adopted(id)
		if !ok {
			return nil, errors.New("no such tree")
		}
		trees[name] = t
		if pid, ok := left.Last[name]; ok {
			last[name], _ = t.Process(pid)
		}
	}
	return g, nil
}

// A child lives on while its supervisor becomes other images, its guardians too, and all that is promised of them holds.
func TestATreeIsHandedOverToTheNextImage(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		p := newPuppet(t, kind)
		pid, _ := p.raise(time.Minute, "echo ready; (setsid sleep 1000 &); sleep 1000 & wait")
		before := p.guardians()
		for range 3 {
			p.do(command{Do: "become"})
			p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
			p.lives()
		}
		if now := p.guardians(); !slices.Equal(now, before) {
			t.Errorf("the guardians were %v, and are %v", before, now)
		}
		if err := unix.Kill(pid, 0); err != nil {
			t.Errorf("the program is gone: %v", err)
		}
		p.order(command{Do: "fail to become"})
		if r := p.hear(); r.Err == "" {
			t.Error("a binary that is not there was executed")
		}
		p.lives()
		p.do(command{Do: "extend", Epoch: 1, In: 300 * time.Millisecond * 3}) // earlier: it changes nothing
		p.do(command{Do: "end", Name: "a"})
		p.dead()
	})
}

// A tree under a lease without a session, as a follower's, is handed over with that lease, and can move to the session's in the next image.
func TestATreeUnderAnotherLeaseIsHandedOver(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		p := newPuppet(t, kind)
		_, _ = p.raise(time.Minute, "echo ready; sleep 1000")
		p.do(command{Do: "begin", Epoch: 2})
		p.do(command{Do: "extend", Epoch: 2, In: time.Minute})
		p.do(command{Do: "tree", Epoch: 2, Name: "copy"})
		r := p.do(command{Do: "start", Name: "copy", Script: "sleep 1000"})
		p.do(command{Do: "become"})
		p.do(command{Do: "move", Name: "copy", Epoch: 1})
		p.do(command{Do: "finish", Epoch: 2})
		p.do(command{Do: "become"})
		if err := unix.Kill(r.Pid, 0); err != nil {
			t.Errorf("the program is gone: %v", err)
		}
		p.do(command{Do: "end", Name: "copy"})
		until(t, "the program is dead, and reaped", func() bool { return unix.Kill(r.Pid, 0) != nil })
		p.do(command{Do: "end", Name: "a"})
		p.dead()
	})
}

// Its end is seen by the image that did not start it, with the status.
func TestTheEndOfAProgramIsSeenByTheNextImage(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		for _, when := range []string{"before", "after"} {
			p := newPuppet(t, kind)
			pid, _ := p.raise(time.Minute, "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done")
			end := func() {
				must.OK(t, unix.Kill(pid, unix.SIGTERM))
			}
			if when == "before" && kind != box.KindPidNS { // its init ends with it: then nothing is left to be handed over
				end()
				p.do(command{Do: "wait", Name: "a"})
			}
			p.do(command{Do: "become"})
			if when == "after" || kind == box.KindPidNS {
				end()
			}
			if r := p.do(command{Do: "wait", Name: "a"}); r.Pid != 7 {
				t.Errorf("%s: it ended with %d", when, r.Pid)
			}
			p.do(command{Do: "end", Name: "a"})
			p.dead()
		}
	})
}

// A start of which nothing is left does not stand in the way.
func TestWhatHasEndedIsNoHindrance(t *testing.T) {
	p := newPuppet(t, box.KindPidNS)
	p.raise(time.Minute, "echo ready; sleep 1000 & wait")
	p.do(command{Do: "start", Name: "a", Script: "exit 0"})
	p.do(command{Do: "wait", Name: "a"})
	p.lives()
	limit := time.Now().Add(patience)
	for { // the init ends a moment after it has said so
		p.order(command{Do: "become"})
		if r := p.hear(); r.Err == "" {
			break
		} else if time.Now().After(limit) {
			t.Fatal(r.Err)
		}
	}
	p.lives()
	p.do(command{Do: "end", Name: "a"})
	p.dead()
}

// What ends when all is written down, but not yet handed over, is found dead by the next image, which goes on.
func TestADeathInTheLastMomentIsSeenByTheNextImage(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		p := newPuppet(t, kind)
		p.raise(time.Minute, "echo ready; exec sleep 1000")
		p.do(command{Do: "become too late"})
		p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
		if r := p.do(command{Do: "wait", Name: "a"}); r.Pid != 137 && (kind != box.KindCgroup || r.Pid != -1) { // see Process.adopt
			t.Errorf("it ended with %d", r.Pid)
		}
		p.do(command{Do: "end", Name: "a"})
		p.dead()
	})
}

// The lease that was left, and no more, is what the next image has; and when it dies all ends.
func TestGuardiansGoOnOverAHandover(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		const script = "echo ready; (setsid sleep 1000 &); sleep 1000 & wait"
		p := newPuppet(t, kind)
		_, deadline := p.raise(2*time.Second, script)
		p.do(command{Do: "become"})
		if at := p.dead(); at < deadline {
			t.Errorf("it died %v before its lease's end", deadline-at)
		}
		if c := p.closing(); !c.AllDead || c.Alive {
			t.Errorf("the session was closed so: %+v", c)
		}
		p = newPuppet(t, kind)
		p.raise(time.Minute, script)
		p.do(command{Do: "become"})
		kill9(p.cmd.Process.Pid)
		p.dead()
		if c := p.closing(); !c.AllDead || c.Alive {
			t.Errorf("the session was closed so: %+v", c)
		}
		p = newPuppet(t, kind)
		p.raise(time.Minute, script)
		p.do(command{Do: "become"})
		freeze(t, p.cmd.Process.Pid) // or it replaces the one before the other is gone
		kill9(p.guardians()...)
		_ = unix.Kill(p.cmd.Process.Pid, unix.SIGCONT)
		p.dead()
	})
}

// There is nothing to hand over but one lease, with the trees that are expected.
func TestOnlyWhatIsExpectedIsHandedOver(t *testing.T) {
	p := newPuppet(t, box.KindPidNS)
	refused := func(what string) {
		t.Helper()
		p.order(command{Do: "become now"})
		if r := p.hear(); r.Err == "" {
			t.Error("handed over: " + what)
		}
	}
	refused("no lease at all")
	p.do(command{Do: "begin", Epoch: 1})
	refused("a lease that has not arrived")
	p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
	p.do(command{Do: "become"})
	p.do(command{Do: "begin", Epoch: 2})
	refused("two leases")
	p.do(command{Do: "finish", Epoch: 2})
	p.do(command{Do: "extend", Epoch: 1, In: time.Minute})
	p.do(command{Do: "become"})
	p.do(command{Do: "finish", Epoch: 1})
}

// The watchdog is fed on by the guardians, and is disarmed by the next image once nothing needs it: it holds the device, too.
func TestTheWatchdogIsHandedOver(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		p := newPuppet(t, kind)
		d, _ := p.armed(time.Minute)
		for range 2 {
			p.do(command{Do: "become"})
			d.fedAnew(2)
		}
		p.do(command{Do: "tree", Epoch: 1, Name: "b"})
		p.do(command{Do: "arm", Name: "b"})
		p.do(command{Do: "end", Name: "a"})
		d.fedAnew(2)
		p.do(command{Do: "end", Name: "b"})
		d.disarmed(1)
	})
}
