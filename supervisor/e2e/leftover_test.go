package e2e

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/e2e/kit"
)

// seize has processes held by this one, so that no signal ends them, until they are let go.
func seize(t *testing.T, pids ...int) (letGo func()) {
	t.Helper()
	held, release, over := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread() // a tracer is a thread; this one ends with it
		for _, pid := range pids {
			if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, unix.PTRACE_O_TRACEEXIT, 0, 0); errno != 0 {
				held <- fmt.Errorf("seize %d: %w", pid, errno)
				return
			}
		}
		held <- nil
		<-release
		for _, pid := range pids {
			var status unix.WaitStatus
			for {
				got, err := unix.Wait4(pid, &status, unix.WALL|unix.WNOHANG, nil)
				if err != nil || got == 0 || !status.Stopped() {
					break
				}
				_ = unix.PtraceCont(pid, 0)
			}
		}
	}()
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	letGo = sync.OnceFunc(func() { close(release); <-over })
	t.Cleanup(letGo)
	return letGo
}

// leftoverFleet is two services that run on one host, with the other standing by; all of the first one is held by a tracer.
func leftoverFleet(t *testing.T, one, other string) (f *fleet, a, b *kit.Host, active *kit.Supervisor, letGo func()) {
	t.Helper()
	f = newFleet(t, 2, 10*time.Millisecond)
	f.Options.Session = session
	f.Keys["s0000"] = "stop_timeout: 1s"
	a, b = f.Lab.Machine(t, one), f.Lab.Machine(t, other)
	a.PowerOn(t) // cgroups of their own: what is held here concerns no other test
	b.PowerOn(t)
	active, _ = f.Serve(t, a)
	f.AllOn(t, one, 0)
	f.Serve(t, b)
	f.AllStand(t, other)
	active.TwoGuardians(t)
	return f, a, b, active, seize(t, f.Of["s0000"].Processes()...)
}

// tells demands that a breadcrumb says that something of its tree is alive.
func (f *fleet) tells(t *testing.T, limit time.Duration, service string) {
	t.Helper()
	kit.Until(t, limit, "the breadcrumb of "+service+" tells of the leftover", func() bool {
		data, _, err := f.Conn().Get(f.Path("services", service, "ActiveBreadCrumb"))
		return err == nil && strings.Contains(string(data), `"leftover":{"pid":`)
	})
}

// What a killed supervisor has left of one service, and nobody can kill, keeps that service from running, here or by a delay on
// another node, and no other. Once it can be killed, the service runs again by itself.
func TestALeftoverCostsItsServiceAlone(t *testing.T) {
	t.Parallel()
	f, a, _, active, letGo := leftoverFleet(t, "left-a", "left-b")
	stuck, free := f.Of["s0000"], f.Of["s0001"]
	pid := stuck.Processes()[0]
	at := f.Unattended(t, active)
	second, _ := f.Serve(t, a)
	f.tells(t, soon, "s0000")
	free.Next(t, soon, at)
	kit.Until(t, soon, "a stands for the other service", func() bool {
		m, ok := f.Member("s0001", a.Name)
		return ok && (m.Role == "standby" || m.Role == "active") && m.Health == "ok"
	})
	said := fmt.Sprintf("pid %d (", pid)
	kit.Until(t, soon, "a says why it does not stand", func() bool {
		m, ok := f.Member("s0000", a.Name)
		return ok && m.Role == "standby" && m.Health == "unfit" && strings.Contains(m.Why, said) && strings.Contains(m.Why, "state t (tracing stop), traced by pid ")
	})
	if !strings.Contains(second.Log(), said) {
		t.Error("the log does not say what is left")
	}
	// By now the former session is over, and the delay as well.
	kit.Throughout(t, session+2*grace, "the service runs nowhere", func() bool {
		runs := stuck.Runs()
		return runs[len(runs)-1].First < at
	})
	letGo()
	stuck.Next(t, 2*soon, at)
	if !second.Running() {
		t.Error("the supervisor has ended")
	}
}

// A supervisor that is asked to stop and cannot prove one tree dead hands all its other services over at once. No delay has another
// node start what may be alive.
func TestAnUnprovedTreeCostsItsServiceAlone(t *testing.T) {
	t.Parallel()
	f, a, b, active, letGo := leftoverFleet(t, "kept-a", "kept-b")
	stuck, free := f.Of["s0000"], f.Of["s0001"]
	run := free.Runs()[0]
	active.Signal(syscall.SIGTERM)
	free.On(t, soon, b.Name, run.First)
	f.tells(t, soon, "s0000")
	ended := stuck.Runs()[0].Last
	kit.Until(t, time.Minute, "the supervisor has given up", func() bool { return !active.Running() })
	kit.Until(t, time.Minute, "its session is over", func() bool { return f.Gone("nodes", a.Name) })
	kit.Throughout(t, session+2*grace, "the service runs nowhere", func() bool { return len(stuck.Runs()) == 1 })
	letGo()
	f.Serve(t, a) // who can prove it dead now
	stuck.Next(t, 2*soon, ended)
}
