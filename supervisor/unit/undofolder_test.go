package unit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// Where /run is open to all, another user can make our folder before us. Commands in it run as this supervisor's user.
func TestWhatAStrangerWroteDownIsNotRun(t *testing.T) {
	need.These(t, "root")
	was := undosDir
	t.Cleanup(func() { undosDir = was })
	undosDir = filepath.Join(t.TempDir(), "understudy")
	open := func() error { return os.Chmod(undosDir, 0o755) }
	for name, prepare := range map[string]func() error{
		"ours":                 open,
		"a stranger's":         func() error { return os.Chown(undosDir, 65533, 65533) },
		"open to all":          func() error { return os.Chmod(undosDir, 0o777) },
		"open to all, as /tmp": func() error { return os.Chmod(undosDir, 0o777|fs.ModeSticky) },
		"a link to a stranger's": func() error {
			theirs := undosDir + ".theirs"
			return errors.Join(os.Rename(undosDir, theirs), os.Symlink(theirs, undosDir))
		},
	} {
		_ = debtor(t, "a", "db", nil).undos.add(vip)
		must.OK(t, prepare())
		next := debtor(t, "a", "db", nil)
		next.LoadUndos()
		names := ServicesWithUndos("a", t.Name())
		if ours := name == "ours"; ours != next.HasPendingEffects() || ours != (len(names) == 1) {
			t.Errorf("%s: %v, of %q", name, next.PendingUndos(), names)
		}
		must.OK(t, errors.Join(os.RemoveAll(undosDir), os.RemoveAll(undosDir+".theirs")))
	}
}

// Who may rename our folder, where /run is open to all, swaps it for one of his as fast as he can. Nothing of his is run, and nothing
// is written where he likes.
func TestWhatIsReadAndWrittenIsInTheFolderThatWasJudged(t *testing.T) {
	need.These(t, "root")
	was := undosDir
	t.Cleanup(func() { undosDir = was })
	run := t.TempDir()
	undosDir = filepath.Join(run, "understudy")
	theirs, precious := filepath.Join(run, "theirs"), filepath.Join(run, "precious")
	one := debtor(t, "a", "db", nil)
	_ = one.undos.add(vip)
	forged := filepath.Join(theirs, filepath.Base(one.undos.store.Path()))
	err := errors.Join(os.Rename(undosDir, theirs), os.Mkdir(undosDir, 0o755), os.Symlink(precious, forged+"~"),
		os.WriteFile(precious, []byte("precious"), 0o600), os.Chown(theirs, 65533, 65533), os.Chown(forged, 65533, 65533))
	must.OK(t, err)
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			_ = unix.Renameat2(unix.AT_FDCWD, undosDir, unix.AT_FDCWD, theirs, unix.RENAME_EXCHANGE)
			select {
			case <-over:
				return
			default:
			}
		}
	}()
	read, named := 0, 0
	for range 20000 {
		next := pendingUndos{node: "a", service: "db", store: one.undos.store, log: hclog.NewNullLogger()}
		if next.load(); len(next.all) > 0 {
			read++
		}
		named += len(ServicesWithUndos("a", t.Name()))
	}
	for range 2000 {
		if one.undos.add(vip) == nil {
			one.undos.dropNewest()
		}
	}
	close(over)
	<-done
	if read > 0 || named > 0 {
		t.Errorf("of a stranger's debts %d were read, %d named", read, named)
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
		t.Errorf("written elsewhere: %s %v", text, err)
	}
}

// In our own folder a file counts only if it is ours: another user may have been let in before.
func TestOnlyAFileOfOursIsRead(t *testing.T) {
	need.These(t, "root")
	was := undosDir
	t.Cleanup(func() { undosDir = was })
	undosDir = filepath.Join(t.TempDir(), "understudy")
	_ = debtor(t, "a", "db", nil).undos.add(vip)
	next := debtor(t, "a", "db", nil)
	must.OK(t, os.Chown(next.undos.store.Path(), 65533, 65533))
	if next.LoadUndos(); len(next.PendingUndos()) > 0 || len(ServicesWithUndos("a", t.Name())) > 0 {
		t.Errorf("a stranger's: %v", next.PendingUndos())
	}
	if names := owedOf("", "a", "db"); len(names) != 1 || names[0] != "unknown" {
		t.Errorf("owed: %q", names)
	}
	if err := next.Undo(t.Context()); err == nil || next.NotUndone() == "" { // nobody knows what is to be undone
		t.Errorf("undone: %v, %q", err, next.NotUndone())
	}
	fifo := debtor(t, "a", "db", nil)
	err := os.Remove(next.undos.store.Path())
	if undone := next.Undo(t.Context()); err != nil || undone != nil || next.NotUndone() != "" {
		t.Errorf("removed by hand: %v, %v, %q", err, undone, next.NotUndone())
	}
	must.OK(t, errors.Join(unix.Mkfifo(fifo.undos.store.Path(), 0o600)))
	if fifo.LoadUndos(); len(fifo.PendingUndos()) > 0 {
		t.Errorf("of a FIFO: %v", fifo.PendingUndos())
	}
}
