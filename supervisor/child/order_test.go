package child

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/supervisor/guard"
)

// However many cgroups a program makes beside its own, as one may that has a part of them delegated: neither to order its death nor to
// look whether it is dead takes a guardian longer for that.
func TestAnOrderOfDeathDoesNotGrowWithWhatAProgramMakes(t *testing.T) {
	tree := planted(t, guarded(t, KindCgroup))
	b, err := openBody(&guard.Ref{Kind: KindCgroup, Path: tree.leaf.path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	costs := func() float64 {
		return testing.AllocsPerRun(3, func() {
			_, looked := b.dead()
			if err := errors.Join(looked, b.strike()); err != nil {
				t.Error(err)
			}
		})
	}
	costs()
	before := costs()
	for i := range 500 {
		if err := os.Mkdir(filepath.Join(tree.leaf.path, runPrefix+"x"+itoa(i)), 0o755); err != nil {
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
	b := &heldBody{body: &walkBody{pid: cmd.Process.Pid, pidfd: os.NewFile(uintptr(held), "stub")}}
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
	box, err := Probe(b.Context(), KindCgroup, "", nil)
	if err != nil {
		b.Fatal(err)
	}
	var all []*heldBody
	for range trees {
		l, err := makeLeaf(box.Base, "bench", "")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = killUntilDead(b.Context(), l, true) })
		in, err := l.newRun(1)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = killUntilDead(b.Context(), in, true) })
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		s, err := statOf(cmd.Process.Pid)
		if err != nil {
			b.Fatal(err)
		}
		one, err := holdFirst(s.pid, s.start)
		if err != nil || one == nil {
			b.Fatal(one, err)
		}
		if err := in.name(one); err != nil {
			b.Fatal(err)
		}
		all = append(all, &heldBody{body: one}, &heldBody{body: l, leaf: true})
	}
	for b.Loop() {
		for _, p := range all {
			p.Order()
		}
	}
}
