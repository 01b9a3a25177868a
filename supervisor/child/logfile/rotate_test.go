package logfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/safefile"
	"understudy/supervisor/testbed/must"
)

func TestRotationKeepsLinesWholeAndInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	const limit = 10_000
	l, end := running(t, Config{Path: path, MaxSize: limit, Keep: 1000})
	const lines = 20_000
	numbered(t, l, lines)
	end()
	all := files(t, path)
	if len(all) < 60 {
		t.Errorf("only %d files", len(all))
	}
	next := 1
	for _, name := range all {
		text := content(t, name)
		if len(text) > limit || len(text) < limit-60 && name != path {
			t.Errorf("%s: %d bytes", name, len(text))
		}
		for line := range strings.Lines(text) {
			if want := fmt.Sprintf("%d %s.\n", next, strings.Repeat("x", next%50)); line != want {
				t.Fatalf("%s: %q, not %q", name, line, want)
			}
			next++
		}
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o640 {
			t.Errorf("%s: %v", name, info.Mode())
		}
	}
	if next != lines+1 || l.Lost() > 0 {
		t.Errorf("%d lines, %d lost", next-1, l.Lost())
	}
}

func TestOnlySoManyAreKept(t *testing.T) {
	for keep := range 3 {
		dir := t.TempDir()
		path := filepath.Join(dir, "app.log")
		for _, name := range []string{"app.log.9", "app.log.7.gz", "app.log.bak", "app.log.01", "other.log.1"} {
			must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
		}
		l, end := running(t, Config{Path: path, MaxSize: 1000, Keep: keep})
		numbered(t, l, 500)
		end()
		if all := files(t, path); len(all) != keep+1 {
			t.Errorf("%d: %v", keep, all)
		}
		for _, name := range []string{"app.log.7.gz", "app.log.bak", "app.log.01", "other.log.1"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("what is not the log's is gone: %v", err)
			}
		}
	}
}

func TestLimitsChangeWhileItRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	l, end := running(t, Config{Path: path})
	numbered(t, l, 500)
	l.Reconfigure(safefile.Who{}, 2000, 2)
	numbered(t, l, 500)
	end()
	if all := files(t, path); len(all) != 3 {
		t.Errorf("%v", all)
	}
}

// The program may become another user's, and its folder with it.
func TestTheUserOfALogChangesWhileItRuns(t *testing.T) {
	need.These(t, "root")
	const one, other = 4711, 4712
	dir := filepath.Join(t.TempDir(), "logs")
	must.OK(t, errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, one, one)))
	path := filepath.Join(dir, "app.log")
	l, end := running(t, Config{Path: path, MaxSize: 2000, Keep: 2, Who: safefile.Who{UID: one}})
	numbered(t, l, 10)
	soon(t, "they are written", func() bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.Count(string(text), "\n") == 10
	})
	must.OK(t, os.Chown(dir, other, other))
	l.Reconfigure(safefile.Who{UID: other}, 2000, 2)
	numbered(t, l, 500)
	end()
	if all, err := os.ReadDir(dir); err != nil || len(all) != 3 {
		t.Errorf("%v, %v", all, err)
	}
}

// A line that never ends is cut by the rotation, so that nothing grows for ever.
func TestEndlessLineIsRotatedToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	l, end := running(t, Config{Path: path, MaxSize: 100_000, Keep: 100})
	for range 300 {
		say(t, l, strings.Repeat("x", 50_000))
	}
	end()
	total := 0
	for _, name := range files(t, path) {
		n := len(content(t, name))
		if n > 3*longLine {
			t.Errorf("%s: %d bytes", name, n)
		}
		total += n
	}
	if total != 15_000_000 || l.Lost() > 0 {
		t.Errorf("%d bytes, %d lost", total, l.Lost())
	}
}
