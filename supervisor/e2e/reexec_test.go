package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
)

// binary is an installed understudy, which may be replaced while it runs.
type binary struct{ path string }

// install puts a copy of the program under test where the test can replace it.
func install(t *testing.T) binary {
	t.Helper()
	b := binary{filepath.Join(t.TempDir(), "understudy")}
	b.replace(t, kit.UnderstudyBinary(t))
	return b
}

// replace does what a package manager does: another file takes the place of the one that runs.
func (b binary) replace(t *testing.T, with string) {
	t.Helper()
	from, err := os.Open(with)
	must(t, err)
	defer from.Close()
	to, err := os.OpenFile(b.path+"~", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(to, from)
	must(t, err)
	must(t, to.Close())
	must(t, os.Rename(b.path+"~", b.path))
}

// script makes a binary of a shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return path
}

// reexec asks a supervisor to go on as what is installed now, and returns what came of it.
func (b binary) reexec(t *testing.T, s *kit.Supervisor) kit.Result {
	t.Helper()
	cmd := exec.Command(kit.UnderstudyBinary(t), "reexec", "--pid", strconv.Itoa(s.Pid), "--binary", b.path, "--timeout", "20s")
	out, _ := cmd.CombinedOutput() // the code tells
	return kit.Result{Out: string(out), Code: cmd.ProcessState.ExitCode()}
}

// upgraded demands that an upgrade works.
func (b binary) upgraded(t *testing.T, s *kit.Supervisor) {
	t.Helper()
	if r := b.reexec(t, s); r.Code != 0 {
		t.Fatalf("reexec ended with %d: %s", r.Code, r.Out)
	}
}

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	must(t, err)
	return len(entries)
}

const mayMiss = 50 * time.Millisecond

// Twenty upgrades in a row, one of them with a binary that does not work: the child does not notice. What the machine takes from
// everybody shows in a bystander.
func TestTwentyUpgradesInARowLeaveTheChildAlone(t *testing.T) {
	p := newPlay(t, stage(t))
	b := install(t)
	p.Options.Binary = b.path
	one, other := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
	a, standby, run := p.Pair(t, one, other)
	lock, _ := p.Lock(p.Options.Service)
	guardians := a.TwoGuardians(t)
	bystander := kit.NewAccounts(t, p.Lab)
	words := bystander.Child()
	one.Run(t, words[0], words[1:]...)
	kit.Until(t, soon, "the bystander runs", func() bool { return len(bystander.Running()) == 1 })
	var worst, ofBystander time.Duration
	b.upgraded(t, a)
	files := descriptors(t, a.Pid)
	for i := range 20 {
		p.Silence(t)
		bystander.Silence(t)
		if i == 9 {
			b.replace(t, script(t, "exit 1"))
			if r := b.reexec(t, a); r.Code != 1 {
				t.Fatalf("a broken binary: %d %s", r.Code, r.Out)
			}
		} else {
			b.replace(t, kit.UnderstudyBinary(t))
			b.upgraded(t, a)
			b.upgraded(t, standby)
		}
		worst, ofBystander = max(worst, p.Silence(t)), max(ofBystander, bystander.Silence(t))
		p.Untouched(t, run)
	}
	t.Logf("20 upgrades: the child's longest silence was %v, a bystander's %v", worst, ofBystander)
	if worst > mayMiss+ofBystander {
		t.Error("the child has noticed")
	}
	if now := descriptors(t, a.Pid); now > files+3 { // some come and go
		t.Errorf("%d descriptors were open, and %d are", files, now)
	}
	if now, _ := p.Lock(p.Options.Service); now.Czxid != lock.Czxid || now.Owner != lock.Owner {
		t.Errorf("the lock was %+v, and is %+v", lock, now)
	}
	now := a.TwoGuardians(t)
	slices.Sort(now)
	slices.Sort(guardians)
	if !slices.Equal(now, guardians) {
		t.Errorf("the guardians were %v, and are %v", guardians, now)
	}
	p.Stands(t, other)
	a.Stop(t)
	p.On(t, soon, "b", run.First)
}
