package logfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/safefile"
)

func put(t *testing.T, name, text string) {
	t.Helper()
	data := []byte(text)
	if strings.HasSuffix(name, ".gz") {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		data = b.Bytes()
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheLastLinesAreTakenFromAsManyFilesAsItTakes(t *testing.T) {
	long := strings.Repeat("x", 100_000) + "\n" // more than what is read at once
	for name, c := range map[string]struct {
		files map[string]string
		lines int
		want  string
	}{
		"newest":        {map[string]string{"": "a\nb\nc\n", ".1": "z\n"}, 2, "b\nc\n"},
		"all of it":     {map[string]string{"": "a\nb\n"}, 2, "a\nb\n"},
		"rotated":       {map[string]string{"": "d\n", ".1": "b\nc\n", ".2": "z\na\n"}, 4, "a\nb\nc\nd\n"},
		"compressed":    {map[string]string{"": "d\n", ".1": "c\n", ".2.gz": "z\na\nb\n"}, 4, "a\nb\nc\nd\n"},
		"fewer":         {map[string]string{"": "b\n", ".1": "a\n"}, 100, "a\nb\n"},
		"none":          {map[string]string{"": "a\n", ".1": "z\n"}, 0, ""},
		"empty":         {map[string]string{"": "", ".1": "y\nz\n"}, 1, "z\n"},
		"unfinished":    {map[string]string{"": "a\nb\nc"}, 2, "b\nc"},
		"long lines":    {map[string]string{"": "a\n" + long + long}, 2, long + long},
		"just rotated":  {map[string]string{".1": "a\nb\n"}, 1, "b\n"},
		"gap in number": {map[string]string{"": "a\n", ".2": "z\n"}, 5, "a\n"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		for suffix, text := range c.files {
			put(t, path+suffix, text)
		}
		got, newest, err := lastLines(path, safefile.Who{}, c.lines)
		if newest.File != nil {
			newest.Close()
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A log that is put aside while it is read is not read twice.
func TestWhatIsRotatedMeanwhileCountsOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	put(t, path, "2\n")
	newest, err := openPiece(path, safefile.Who{})
	if err != nil {
		t.Fatal(err)
	}
	defer newest.Close()
	put(t, path+".2", "1\n")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	var got []string
	err = older(path, safefile.Who{}, newest, func(p piece) (bool, error) {
		text, err := p.whole()
		if got = append(got, string(text)); len(got) == 1 { // and once more
			for n := 2; n > 0; n-- {
				if err := os.Rename(rotatedName(path, n, false), rotatedName(path, n+1, false)); err != nil {
					t.Fatal(err)
				}
			}
		}
		return true, err
	})
	if err != nil || len(got) != 1 || got[0] != "1\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// While files are put one further, the oldest first, one is missing between others for a moment.
func TestAGapBetweenRotatedFilesIsNotTheirEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	put(t, path+".1", "2\n")
	put(t, path+".2", "1\n")
	var got []string
	filled := make(chan error, 1)
	err := older(path, safefile.Who{}, piece{}, func(p piece) (bool, error) {
		text, err := p.whole()
		if got = append(got, string(text)); len(got) == 1 {
			err = errors.Join(err, os.Rename(path+".2", path+".3"))
			time.AfterFunc(5*time.Millisecond, func() { filled <- os.Rename(path+".1", path+".2") })
		}
		return true, err
	})
	if err := errors.Join(err, <-filled); err != nil || len(got) != 2 || got[1] != "1\n" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWhatCannotBeReadIsToldInWords(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := lastLines(filepath.Join(dir, "none"), safefile.Who{}, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, _, err := lastLines(dir, safefile.Who{}, 1); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	path := filepath.Join(dir, "log")
	put(t, path, "a\n")
	put(t, path+".1", "this is not gzip")
	if err := os.Rename(path+".1", path+".1.gz"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := lastLines(path, safefile.Who{}, 5); err == nil || !strings.Contains(err.Error(), "unpack "+path+".1.gz") {
		t.Errorf("no gzip: %v", err)
	}
}

// follower of a log whose every change is made by the test.
type followed struct {
	*testing.T
	path string
	out  bytes.Buffer
	told []string
	*Reader
}

func follow(t *testing.T) *followed {
	f := &followed{T: t, path: filepath.Join(t.TempDir(), "log")}
	f.Reader = &Reader{Path: f.path, Out: &f.out, Tell: func(s string) { f.told = append(f.told, s) }, Head: func() error { return nil }}
	t.Cleanup(func() { f.Close() })
	return f
}

func (f *followed) add(text string) {
	f.Helper()
	w, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteString(text); err != nil {
		f.Fatal(err)
	}
}

// rotate puts everything one further, as logfile does.
func (f *followed) rotate(compress bool) {
	f.Helper()
	for n := 9; n > 0; n-- {
		for _, gz := range []bool{false, true} {
			_ = os.Rename(rotatedName(f.path, n, gz), rotatedName(f.path, n+1, gz)) // most are not there
		}
	}
	if err := os.Rename(f.path, f.path+".1"); err != nil {
		f.Fatal(err)
	}
	if compress {
		text, err := os.ReadFile(f.path + ".1")
		if err != nil {
			f.Fatal(err)
		}
		put(f.T, f.path+".1.gz", string(text))
		os.Remove(f.path + ".1")
	}
}

func (f *followed) sees(want string, told int) {
	f.Helper()
	if err := f.More(); err != nil {
		f.Fatal(err)
	}
	if f.out.String() != want || len(f.told) != told {
		f.Fatalf("%q, and told %q; want %q", f.out.String(), f.told, want)
	}
	f.out.Reset()
}

func TestALogIsFollowedOverAnyRotation(t *testing.T) {
	for _, compress := range []bool{false, true} {
		t.Run(fmt.Sprint("compressed ", compress), func(t *testing.T) {
			f := follow(t)
			f.sees("", 0) // it does not exist yet
			f.add("1\n")
			f.sees("1\n", 0)
			f.sees("", 0)
			f.add("2\n")
			f.rotate(compress)
			f.sees("2\n", 0) // the new one does not exist yet
			f.add("3\n")
			f.sees("3\n", 0)
			f.add("4\n")
			for _, text := range []string{"5\n", "6\n", "7\n"} { // several times between two looks
				f.rotate(compress)
				f.add(text)
			}
			f.sees("4\n5\n6\n7\n", 0)
			f.add("8\n")
			f.sees("8\n", 0)
		})
	}
}

func TestALogThatIsCutIsReadFromItsStart(t *testing.T) {
	f := follow(t)
	f.add("1\n2\n")
	f.sees("1\n2\n", 0)
	if err := os.Truncate(f.path, 0); err != nil {
		t.Fatal(err)
	}
	f.add("3\n")
	f.sees("3\n", 1)
}

func TestLinesThatWereRotatedAwayForGoodAreMissed(t *testing.T) {
	f := follow(t)
	f.add("1\n")
	f.sees("1\n", 0)
	f.rotate(false)
	os.Remove(f.path + ".1")
	f.add("9\n")
	f.sees("9\n", 1)
}
