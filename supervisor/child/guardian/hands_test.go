package guardian

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/guard"
	"understudy/supervisor/testbed/must"
)

// A cgroup that is gone by the time a new guardian hears of its tree has nobody in it, but the tree may have a program that had left
// it. What is only out of sight is not taken for gone.
func TestATreeWhoseCgroupIsGoneIsKnownToANewGuardian(t *testing.T) {
	base := place(t)
	hears := func(path string) (guard.Box, error) {
		return (&guardian{}).Open(&guard.Message{Op: guard.OpTree, Box: &guard.Ref{Kind: box.KindCgroup, Path: path}})
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
	deadSignal := func() *os.File {
		w, err := box.NewDeadSignal()
		must.OK(t, err)
		return w
	}
	saw := deadSignal()
	must.OK(t, box.Ring(int(saw.Fd())))
	for name, c := range map[string]struct {
		kind       string
		deadSignal *os.File
		seq        uint64
		refused    bool
		holds      bool
	}{
		"an init":                                {kind: box.KindPidNS},
		"an init that is to be let go":           {kind: box.KindPidNS, seq: 1, refused: true},
		"a stub that saw its tree dead":          {kind: box.KindWalk, deadSignal: saw},
		"a stub that did not":                    {kind: box.KindWalk, deadSignal: deadSignal(), holds: true},
		"a stub that is to be let go":            {kind: box.KindWalk, deadSignal: deadSignal(), seq: 1, refused: true},
		"a stub whose word did not come with it": {kind: box.KindWalk, refused: true},
	} {
		m := &guard.Message{Op: guard.OpJoin, Seq: c.seq, Box: &guard.Ref{Kind: c.kind, Pid: os.Getpid(), Start: 1}}
		if c.deadSignal != nil {
			m.Along = c.deadSignal
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

// A guardian writes to the device, and says farewell only if it is told to.
func TestAGuardianWritesToTheWatchdogThatItShares(t *testing.T) {
	for last, want := range map[bool]string{true: "1V", false: "1"} {
		r, w, err := os.Pipe()
		must.OK(t, err)
		defer r.Close()
		g := &guardian{watchdog: -1}
		must.OK(t, g.Take(&guard.Message{Op: guard.OpWatchdog, Grace: time.Second, Along: w}))
		g.Feed()
		g.LetGo(last)
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("last %v: %q, %v", last, got, err)
		}
	}
	if err := (&guardian{watchdog: -1}).Take(&guard.Message{Op: guard.OpWatchdog, Grace: time.Second}); err == nil {
		t.Error("there is no device, and it is content")
	}
}

// place is where cgroups can be made.
func place(t testing.TB) string {
	t.Helper()
	need.These(t, box.KindCgroup)
	base, err := box.CgroupBase()
	if err == nil {
		err = os.MkdirAll(base, 0o755)
	}
	must.OK(t, err)
	return base
}
