package guardian

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/guard"
	"understudy/supervisor/testbed/must"
)

// However many cgroups a program makes beside its own, as one may that has a part of them delegated: neither to order its death nor to
// look whether it is dead takes a guardian longer for that.
func TestAnOrderOfDeathDoesNotGrowWithWhatAProgramMakes(t *testing.T) {
	l, err := box.MakeTreeCgroup(place(t), "order", "")
	must.OK(t, err)
	t.Cleanup(func() { _ = box.KillUntilDead(context.Background(), l, true) })
	b, err := openBox(&guard.Ref{Kind: box.KindCgroup, Path: l.Path}, nil)
	must.OK(t, err)
	defer b.Close()
	costs := func() float64 {
		return testing.AllocsPerRun(3, func() {
			_, looked := b.Dead()
			must.Report(t, errors.Join(looked, b.KillNow()))
		})
	}
	costs()
	before := costs()
	for i := range 500 {
		must.OK(t, os.Mkdir(filepath.Join(l.Path, box.RunPrefix+"x"+strconv.Itoa(i)), 0o755))
	}
	if after := costs(); after > before+50 {
		t.Errorf("%v allocations, and %v with 500 cgroups beside", before, after)
	}
}

// P3: an order of death looks at nothing, so that it takes next to nothing.
func TestTheFirstOrderOfDeathLooksAtNothing(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	must.OK(t, cmd.Start())
	held, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	must.OK(t, err)
	b := &heldBox{Box: &box.WalkBox{Pid: cmd.Process.Pid, Pidfd: os.NewFile(uintptr(held), "stub")}}
	defer b.Close()
	if cost := testing.AllocsPerRun(3, b.Order); cost > 20 {
		t.Errorf("it takes %v allocations", cost)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not told")
	}
}

// What the first order of death takes a guardian, of which nothing is looked at yet: the last of its trees waits for all the others.
func BenchmarkFirstOrderOfDeath(b *testing.B) {
	const trees = 200
	base := place(b)
	var all []*heldBox
	for range trees {
		l, err := box.MakeTreeCgroup(base, "bench", "")
		must.OK(b, err)
		b.Cleanup(func() { _ = box.KillUntilDead(b.Context(), l, true) })
		in, err := l.NewRun(1)
		must.OK(b, err)
		b.Cleanup(func() { _ = box.KillUntilDead(b.Context(), in, true) })
		cmd := exec.Command("sleep", "1000")
		must.OK(b, cmd.Start())
		b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		s, err := box.StatOf(cmd.Process.Pid)
		must.OK(b, err)
		one, err := box.HoldFirst(s.Pid, s.Start)
		if err != nil || one == nil {
			b.Fatal(one, err)
		}
		must.OK(b, in.Name(one))
		all = append(all, &heldBox{Box: one}, &heldBox{Box: l, cgroup: true})
	}
	for b.Loop() {
		for _, p := range all {
			p.Order()
		}
	}
}
