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
)

// However many cgroups a program makes beside its own, as one may that has a part of them delegated: neither to order its death nor to
// look whether it is dead takes a guardian longer for that.
func TestAnOrderOfDeathDoesNotGrowWithWhatAProgramMakes(t *testing.T) {
	l, err := box.MakeTreeCgroup(place(t), "order", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.KillUntilDead(context.Background(), l, true) })
	b, err := openBox(&guard.Ref{Kind: box.KindCgroup, Path: l.Path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	costs := func() float64 {
		return testing.AllocsPerRun(3, func() {
			_, looked := b.Dead()
			if err := errors.Join(looked, b.Strike()); err != nil {
				t.Error(err)
			}
		})
	}
	costs()
	before := costs()
	for i := range 500 {
		if err := os.Mkdir(filepath.Join(l.Path, box.RunPrefix+"x"+strconv.Itoa(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if after := costs(); after > before+50 {
		t.Errorf("%v allocations, and %v with 500 cgroups beside", before, after)
	}
}

// P3: an order of death looks at nothing, so that it takes next to nothing.
func TestTheFirstOrderOfDeathLooksAtNothing(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = box.KillUntilDead(b.Context(), l, true) })
		in, err := l.NewRun(1)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = box.KillUntilDead(b.Context(), in, true) })
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		s, err := box.StatOf(cmd.Process.Pid)
		if err != nil {
			b.Fatal(err)
		}
		one, err := box.HoldFirst(s.Pid, s.Start)
		if err != nil || one == nil {
			b.Fatal(one, err)
		}
		if err := in.Name(one); err != nil {
			b.Fatal(err)
		}
		all = append(all, &heldBox{Box: one}, &heldBox{Box: l, cgroup: true})
	}
	for b.Loop() {
		for _, p := range all {
			p.Order()
		}
	}
}
