package unit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"understudy/packaging/need"
)

// Where /run is open to all, another user can make our folder before us. Commands in it run as this supervisor's user.
func TestWhatAStrangerWroteDownIsNotRun(t *testing.T) {
	need.These(t, "root")
	was := debtsDir
	t.Cleanup(func() { debtsDir = was })
	debtsDir = filepath.Join(t.TempDir(), "understudy")
	open := func() error { return os.Chmod(debtsDir, 0o755) }
	for name, prepare := range map[string]func() error{
		"ours":                 open,
		"a stranger's":         func() error { return os.Chown(debtsDir, 65533, 65533) },
		"open to all":          func() error { return os.Chmod(debtsDir, 0o777) },
		"open to all, as /tmp": func() error { return os.Chmod(debtsDir, 0o777|fs.ModeSticky) },
		"a link to a stranger's": func() error {
			theirs := debtsDir + ".theirs"
			return errors.Join(os.Rename(debtsDir, theirs), os.Symlink(theirs, debtsDir))
		},
	} {
		debtor(t, "a", "db", func(context.Context) {}).debts.add(vip)
		if err := prepare(); err != nil {
			t.Fatal(err)
		}
		next := debtor(t, "a", "db", func(context.Context) {})
		next.LoadDebts()
		names := Indebted("a", t.Name())
		if ours := name == "ours"; ours != next.Owes() || ours != (len(names) == 1) {
			t.Errorf("%s: %v, of %q", name, next.Debts(), names)
		}
		if err := errors.Join(os.RemoveAll(debtsDir), os.RemoveAll(debtsDir+".theirs")); err != nil {
			t.Fatal(err)
		}
	}
}
