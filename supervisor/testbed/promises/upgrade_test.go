package promises

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

func descriptors(t *testing.T, pid int) (open []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	must.OK(t, err)
	for _, e := range entries {
		file, _ := os.Readlink(filepath.Join(dir, e.Name()))
		open = append(open, e.Name()+" "+file)
	}
	return open
}

// Upgrades in a row, one of them with a binary that does not work: the child does not notice. What the machine takes from everybody
// shows in a bystander.
func TestUpgradesLeaveTheChildAlone(t *testing.T) {
	p := play(t, stage(t))
	b := kit.Install(t)
	p.Options.Binary = string(b)
	one, other := p.Lab.Host(t, "a"), p.Lab.Host(t, "b")
	a, standby, run := p.Pair(t, one, other)
	lock, _ := p.Lock(p.Options.Service)
	guardians := a.TwoGuardians(t)
	bystander := kit.NewAccounts(t, p.Lab)
	words := bystander.Child()
	one.Run(t, words[0], words[1:]...)
	kit.Until(t, soon, "the bystander runs", func() bool { return len(bystander.Running()) == 1 })
	var worst, ofBystander time.Duration
	files := descriptors(t, a.Pid) // an image that has just begun has not opened all yet
	b.Upgraded(t, a)
	for i := range 5 {
		p.Silence(t)
		bystander.Silence(t)
		if i == 2 {
			b.Replace(t, kit.Script(t, "exit 1"))
			if r := b.Reexec(t, a); r.Code != 1 {
				t.Fatalf("a broken binary: %d %s", r.Code, r.Out)
			}
		} else {
			b.Replace(t, kit.UnderstudyBinary(t))
			b.Upgraded(t, a)
			b.Upgraded(t, standby)
		}
		worst, ofBystander = max(worst, p.Silence(t)), max(ofBystander, bystander.Silence(t))
		p.Untouched(t, run)
	}
	t.Logf("the child's longest silence was %v, a bystander's %v", worst, ofBystander)
	if worst > ofBystander+session {
		t.Error("the child has noticed")
	}
	t.Logf("descriptors: %d, then %d", len(files), len(descriptors(t, a.Pid)))
	few := func() bool { return len(descriptors(t, a.Pid)) <= len(files)+3 } // some come and go
	if !kit.Reached(soon, few) {
		t.Errorf("there were %d descriptors open:\n%s\nand are:\n%s", len(files), strings.Join(files, "\n"), strings.Join(descriptors(t, a.Pid), "\n"))
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
