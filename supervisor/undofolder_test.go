package supervisor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Where /run is open to all a stranger can make our folder before us. What is written down there is run as this supervisor's user.
func TestWhatAStrangerWroteDownIsNotRun(t *testing.T) {
	if strings.Contains(os.Getenv("UNDERSTUDY_LEFT_OUT"), "root") {
		t.Skip("root is left out")
	}
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
		v := debtor(t, "a", "db", func(context.Context) {})
		v.debts = []debt{{Name: "vip", Command: []string{"true"}, Timeout: time.Second}}
		v.writeDebts()
		if err := prepare(); err != nil {
			t.Fatal(err)
		}
		v.debts = nil
		v.inherit()
		s := &supervisor{cfg: Config{Node: "a", Servers: []string{t.Name()}}}
		names := s.indebted()
		if ours := name == "ours"; ours != (len(v.debts) == 1) || ours != (len(names) == 1) {
			t.Errorf("%s: %v, of %q", name, v.debts, names)
		}
		if err := errors.Join(os.RemoveAll(debtsDir), os.RemoveAll(debtsDir+".theirs")); err != nil {
			t.Fatal(err)
		}
	}
}
