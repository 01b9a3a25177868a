package child

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"understudy/supervisor/child/box"
	"understudy/supervisor/guard"
)

// A cgroup that is gone by the time a new guardian hears of its tree has nobody in it, but the tree may have a program that had left
// it. What is only out of sight is not taken for gone.
func TestATreeWhoseCgroupIsGoneIsKnownToANewGuardian(t *testing.T) {
	base := probed(t, box.KindCgroup).Base
	hears := func(path string) (guard.Body, error) {
		return (&guardian{}).Open(&guard.Message{Op: guard.OpTree, Body: &guard.Ref{Kind: box.KindCgroup, Path: path}})
	}
	if b, err := hears(filepath.Join(base, "gone")); b != nil || err != nil {
		t.Errorf("a tree whose cgroup is removed is unknown: %v", err)
	}
	if _, err := hears(filepath.Join(t.TempDir(), "hidden")); err == nil {
		t.Error("a cgroup that cannot be seen is taken for one that is removed")
	}
}

// A process that is gone by the time a new guardian hears of it is no reason to do without that guardian; but one that ended before it
// had seen its tree dead proves nothing for ever.
func TestAProcessThatIsGoneIsKnownToANewGuardian(t *testing.T) {
	witness := func() *os.File {
		w, err := box.NewWitness()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	saw := witness()
	if err := box.RaiseWitness(int(saw.Fd())); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kind    string
		witness *os.File
		seq     uint64
		refused bool
		holds   bool
	}{
		"an init":                                {kind: box.KindPidNS},
		"an init that is to be let go":           {kind: box.KindPidNS, seq: 1, refused: true},
		"a stub that saw its tree dead":          {kind: box.KindWalk, witness: saw},
		"a stub that did not":                    {kind: box.KindWalk, witness: witness(), holds: true},
		"a stub that is to be let go":            {kind: box.KindWalk, witness: witness(), seq: 1, refused: true},
		"a stub whose word did not come with it": {kind: box.KindWalk, refused: true},
	} {
		m := &guard.Message{Op: guard.OpBody, Seq: c.seq, Body: &guard.Ref{Kind: c.kind, Pid: os.Getpid(), Start: 1}}
		if c.witness != nil {
			m.Along = c.witness
		}
		b, err := (&guardian{}).Open(m)
		if (err != nil) != c.refused || (b != nil) != c.holds {
			t.Errorf("%s: holds %v, %v", name, b, err)
		}
		if b != nil && b.Look(true).Dead {
			t.Errorf("%s is proof", name)
		}
	}
}

// P4: a guardian that does not know of a tree is none. Where no new one can know, it ends.
func TestAGuardianThatCannotKnowATreeIsNotSeated(t *testing.T) {
	g := guarded(t, box.KindCgroup)
	tree := planted(t, g)
	g.guardians.mu.Lock()
	path := tree.leaf.Path
	tree.leaf.Path = filepath.Join(t.TempDir(), "hidden")
	kill9(g.guardians.at[0].pid)
	g.guardians.mu.Unlock()
	select {
	case <-g.Over(1):
	case <-time.After(patience):
		t.Error("one of the guardians does not know of the tree, and it goes on")
	}
	if err := g.Cause(1); err != nil && !errors.Is(err, ErrGuardiansLost) {
		t.Error(err)
	}
	g.guardians.mu.Lock()
	tree.leaf.Path = path
	g.guardians.mu.Unlock()
	if err := tree.End(t.Context()); err != nil {
		t.Error(err)
	}
}
