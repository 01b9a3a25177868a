package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/testbed/must"
)

// successor is a supervisor that finds a note in dir.
func successor(t *testing.T, dir string) *supervisor {
	t.Helper()
	cfg := Config{Node: "a", Root: "/u", Logger: hclog.NewNullLogger()}
	cfg.SessionRecord = sessionRecordIn(dir, cfg)
	return &supervisor{cfg: cfg, log: cfg.Logger}
}

// goneMaker is a supervisor that is gone, with all programs, as far as this process can see.
func goneMaker(t *testing.T) box.Maker {
	t.Helper()
	host, err := box.Identity()
	must.OK(t, err)
	return box.Maker{TreeID: box.TreeID{Kind: box.KindWalk, Boot: host.Boot, PidNS: host.PidNS, Pid: 1 << 30, StartTime: 1}}
}

func leave(t *testing.T, dir string, as leftSession) (path string) {
	t.Helper()
	s := successor(t, dir)
	data, err := json.Marshal(as)
	if err == nil {
		err = s.cfg.SessionRecord.store.Save(data)
	}
	must.OK(t, err)
	return s.cfg.SessionRecord.store.Path()
}

// folder is one that only root can write to, as /run/understudy.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "former")
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// P2: the lease of the supervisor before counts as over only if its note is to be trusted, and its programs are proved dead.
func TestALeaseIsOverEarlyOnlyIfAllProgramsOfItsSupervisorAreProvedDead(t *testing.T) {
	need.These(t, "root")
	for name, c := range map[string]struct {
		change func(*leftSession)
		forge  func(path string) error
		dead   bool
		stays  bool // the note
	}{
		"proved dead, by sweep":      {dead: true, stays: true},
		"not proved dead":            {change: func(l *leftSession) { l.Dead = false }, stays: true},
		"of another node":            {change: func(l *leftSession) { l.Node = "b" }, stays: true},
		"of another boot":            {change: func(l *leftSession) { l.Maker.Boot = "another" }},
		"of another container":       {change: func(l *leftSession) { l.Dead, l.Maker.PidNS = false, 1 }, stays: true},
		"of a supervisor that lives": {change: func(l *leftSession) { l.Dead, l.Maker = false, livingMaker(t) }, stays: true},
		"no session":                 {change: func(l *leftSession) { l.Session = 0 }, stays: true},
		"others can read it":         {forge: func(path string) error { return os.Chmod(path, 0o644) }, stays: true},
		"another user's":             {forge: func(path string) error { return os.Chown(path, 65533, 65533) }, stays: true},
		"others can write there":     {forge: func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) }, stays: true},
		"a link": {forge: func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.Symlink(filepath.Base(path)+".old", path), os.Lchown(path, 65533, 65533))
		}, stays: true},
		"not readable": {forge: func(path string) error { return os.WriteFile(path, []byte(`{"node":"a"`), 0o600) }, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			note := leftSession{Node: "a", Maker: goneMaker(t), Dead: true, Session: 7}
			if c.change != nil {
				c.change(&note)
			}
			path := leave(t, dir, note)
			if c.forge != nil {
				must.OK(t, c.forge(path))
			}
			s := successor(t, dir)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			left := s.cfg.SessionRecord.load()
			if dead := left != nil && s.previousDied(ctx, left); dead != c.dead {
				t.Errorf("dead: %v", dead)
			}
			if _, err := os.Lstat(path); (err == nil) != c.stays {
				t.Errorf("the note: %v", err)
			}
		})
	}
}

// livingMaker is this process.
func livingMaker(t *testing.T) box.Maker {
	t.Helper()
	text, err := os.ReadFile("/proc/self/stat")
	must.OK(t, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')'):]))
	m := goneMaker(t)
	m.Pid = os.Getpid()
	if m.StartTime, err = strconv.ParseUint(fields[20], 10, 64); err != nil {
		t.Fatal(err)
	}
	return m
}

// A supervisor leaves a note of its own session alone, and takes it away when it ends.
func TestASupervisorTakesItsOwnNoteAway(t *testing.T) {
	need.These(t, "root")
	dir := folder(t)
	path := leave(t, dir, leftSession{Node: "a", Maker: goneMaker(t), Session: 7})
	s := successor(t, dir)
	f := s.cfg.SessionRecord
	f.end() // it never had a session
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	f.noteSession(8, func() (box.Maker, error) { return goneMaker(t), nil })
	left := f.load()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || left == nil || left.Session != 8 {
		t.Errorf("%+v, %v", left, err)
	}
	f.end()
	if _, err := os.Stat(path); err == nil {
		t.Error("the note is still there")
	}
}

// systemd removes the cgroups of a unit that is down: the proof is made before that.
func TestASweepNotesThatTheProgramsOfItsUnitAreDead(t *testing.T) {
	need.These(t, "root", box.KindCgroup)
	mounted := "/sys/fs/cgroup/unified"
	if _, err := os.Stat(mounted + "/cgroup.procs"); err != nil {
		mounted = "/sys/fs/cgroup"
	}
	unit, err := os.MkdirTemp(mounted, "understudy-unit")
	must.OK(t, err)
	t.Cleanup(func() { _ = os.Remove(unit) })
	var st syscall.Stat_t
	must.OK(t, syscall.Stat(unit, &st))
	for name, c := range map[string]struct {
		unit  string
		start uint64
		dead  bool
	}{"its own": {unit, 1, true}, "another unit's": {unit + "x", 1, false}, "alive": {unit, livingMaker(t).StartTime, false}} {
		dir, maker := folder(t), goneMaker(t)
		maker.Kind, maker.Path, maker.Inode = box.KindCgroup, unit, st.Ino
		if c.start > 1 {
			maker.Pid, maker.StartTime = os.Getpid(), c.start
		}
		leave(t, dir, leftSession{Node: "a", Maker: maker, Session: 7})
		must.Report(t, sweptIn(t.Context(), dir, c.unit))
		s := successor(t, dir)
		if left := s.cfg.SessionRecord.load(); left == nil || left.Dead != c.dead || left.Session != 7 {
			t.Errorf("%s: %+v", name, left)
		}
	}
}
