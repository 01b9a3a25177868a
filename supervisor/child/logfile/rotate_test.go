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
)

func TestRotationKeepsLinesWholeAndInOrder(t *testing.T) {
	for _, press := range []bool{false, true} {
		t.Run(fmt.Sprint("compress ", press), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.log")
			const limit = 10_000
			l, end := running(t, Config{Path: path, MaxSize: limit, Keep: 1000, Compress: press})
			const lines = 20_000
			numbered(t, l, lines)
			if press {
				soon(t, "all compressed", func() bool {
					plain := 0
					for _, name := range files(t, path) {
						if !strings.HasSuffix(name, ".gz") {
							plain++
						}
					}
					return plain == 1
				})
			}
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
		})
	}
}

func TestOnlySoManyAreKept(t *testing.T) {
	for keep := range 3 {
		dir := t.TempDir()
		path := filepath.Join(dir, "app.log")
		for _, name := range []string{"app.log.9", "app.log.7.gz", "app.log.bak", "app.log.01", "other.log.1"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, end := running(t, Config{Path: path, MaxSize: 1000, Keep: keep})
		numbered(t, l, 500)
		end()
		if all := files(t, path); len(all) != keep+1 {
			t.Errorf("%d: %v", keep, all)
		}
		for _, name := range []string{"app.log.bak", "app.log.01", "other.log.1"} {
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
	l.Reconfigure(safefile.Who{}, 2000, 2, false)
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
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, one, one)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "app.log")
	l, end := running(t, Config{Path: path, MaxSize: 2000, Keep: 2, Who: safefile.Who{UID: one}})
	numbered(t, l, 10)
	soon(t, "they are written", func() bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.Count(string(text), "\n") == 10
	})
	if err := os.Chown(dir, other, other); err != nil {
		t.Fatal(err)
	}
	l.Reconfigure(safefile.Who{UID: other}, 2000, 2, false)
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

// What a killed supervisor left half compressed is done again.
func TestCompressionIsTakenUpAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	if err := errors.Join(os.WriteFile(path+".1", []byte("newer\n"), 0o600), os.WriteFile(path+".2", []byte("older\n"), 0o600),
		os.WriteFile(filepath.Join(dir, ".app.log.gz.tmp"), []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, end := running(t, Config{Path: path, MaxSize: 1000, Keep: 3, Compress: true})
	soon(t, "compressed", func() bool { return strings.Join(files(t, path), " ") == path+".2.gz "+path+".1.gz "+path })
	end()
	if content(t, path+".1.gz") != "newer\n" || content(t, path+".2.gz") != "older\n" {
		t.Error("not what it was")
	}
	if _, err := os.Stat(filepath.Join(dir, ".app.log.gz.tmp")); err == nil {
		t.Error("the draft is left")
	}
}

// There may be nothing to compress again by then.
func TestADraftOfAKilledSupervisorIsRemoved(t *testing.T) {
	for _, press := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "app.log")
		draft := filepath.Join(filepath.Dir(path), ".app.log.gz.tmp")
		if err := os.WriteFile(draft, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, end := running(t, Config{Path: path, MaxSize: 1000, Keep: 3, Compress: press})
		soon(t, "the draft is gone", func() bool { _, err := os.Stat(draft); return err != nil })
		end()
	}
}

// A program's user may put a file of any size where a rotated one is expected, and one log at a time is compressed.
func TestAFileThatNoRotationLeftIsNotCompressed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	if err := errors.Join(os.WriteFile(path+".1", []byte("newer\n"), 0o600), os.WriteFile(path+".2", nil, 0o600), os.Truncate(path+".2", 1<<40)); err != nil {
		t.Fatal(err)
	}
	_, end := running(t, Config{Path: path, MaxSize: 1000, Keep: 3, Compress: true})
	soon(t, "the other one is compressed", func() bool { return strings.Join(files(t, path), " ") == path+".2 "+path+".1.gz "+path })
	end()
}

// While a file is compressed it may be moved on, or away: the result takes its place, and nobody else's.
func TestCompressedFileTakesThePlaceThatThePlainOneHasByThen(t *testing.T) {
	for _, away := range []bool{false, true} {
		dir := t.TempDir()
		f := newFile(Config{Path: filepath.Join(dir, "app.log"), Keep: 5, Compress: true})
		at := func(n int, gz bool) string { return filepath.Join(dir, f.name(n, gz)) }
		in := dirOf(t, f.path)
		draft := filepath.Join(dir, "draft")
		if err := os.WriteFile(at(1, false), []byte("old\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(at(1, false))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Rename(at(1, false), at(4, false)), os.WriteFile(at(1, false), []byte("new\n"), 0o600),
			os.WriteFile(at(5, false), []byte("older\n"), 0o600), os.WriteFile(draft, []byte("packed"), 0o600)); err != nil {
			t.Fatal(err)
		}
		want := "app.log.1 app.log.4.gz app.log.5"
		if away {
			want = "app.log.1 app.log.5 draft"
			if err := os.Rename(at(4, false), filepath.Join(t.TempDir(), "x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.replace(in, filepath.Base(draft), info); err != nil {
			t.Fatal(err)
		}
		in.Close()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v, not %s", got, want)
		}
	}
}
