package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// aboard is a disk that holds the few files which a fuzzed one may include.
func aboard() disk {
	files := fstest.MapFS{
		"conf.d/one.yaml":    {Data: []byte("services: {one: {command: x}}\n")},
		"conf.d/two.yaml":    {Data: []byte("services: {two: {processes: [{name: a, command: b}]}}\n")},
		"conf.d/empty.yaml":  {Data: []byte("# nothing\n")},
		"parts/again.yaml":   {Data: []byte("services: {s: {command: y}}\n")},
		"parts/faulty.yaml":  {Data: []byte("node: m\nservices: {u: {nice: -99}}\n")},
		"parts/tab.yaml":     {Data: []byte("services:\n\tt: x\n")},
		"parts/include.yaml": {Data: []byte("include: [u.yaml]\n")},
	}
	inside := func(name string) string { return strings.Trim(filepath.Clean("/"+name), "/") }
	return disk{
		read: func(name string) ([]byte, error) { return files.ReadFile(inside(name)) },
		list: func(dir string) ([]fs.DirEntry, error) {
			if dir = inside(dir); dir == "" {
				dir = "."
			}
			return files.ReadDir(dir)
		},
	}
}

func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/broken/*.yaml", "testdata/doubtful/*.yaml", "testdata/valid/*.yaml", "../../examples/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			f.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 16<<10 {
			return // only the time would grow
		}
		began := time.Now()
		r := newLoader("u.yaml", aboard()).load(src)
		if took := time.Since(began); took > time.Minute {
			t.Fatalf("took %v", took)
		}
		if err := r.Err(); err != nil {
			checkFaults(t, src, err)
			return
		}
		for _, w := range r.Warnings {
			if w.Message == "" || w.File == "" {
				t.Errorf("a warning without a place: %v", w)
			}
		}
		if err := r.Config.Validate(); err != nil {
			t.Fatalf("what was loaded is not valid: %v", err)
		}
		checkRoundTrip(t, r.Config)
	})
}

func checkFaults(t *testing.T, src []byte, err error) {
	t.Helper()
	var faults Faults
	if !errors.As(err, &faults) || len(faults) == 0 {
		t.Fatalf("%T with %d faults", err, len(faults))
	}
	lines := strings.Count(string(src), "\n") + strings.Count(string(src), "\r") +
		strings.Count(string(src), "\u2028") + strings.Count(string(src), "\u2029") + strings.Count(string(src), "\u0085")
	for _, fault := range faults {
		if fault.Line < 1 || fault.File == "u.yaml" && fault.Line > lines+1 || fault.Column < 1 || fault.Message == "" {
			t.Errorf("out of place: %v", fault)
		}
	}
}

func FuzzSplitWords(f *testing.F) {
	for _, line := range []string{`a b`, `a "b c" 'd'`, `a\ b`, "a \\\n b", `"a\"b\x"`, `''`, `a|b`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := SplitWords(line)
		if err != nil {
			return
		}
		var quoted []string
		for _, word := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
		}
		again, err := SplitWords(strings.Join(quoted, " "))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(words, again); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzParseEnv(f *testing.F) {
	for _, text := range []string{"A=b\n", "# c\\\nd\nA = 'x\ny' \"z\"\n", "A=\\\nb\\", "A=\"a\\\"b\\$c\\d\\\ne\"", "export A=b", "A='", "=", "\xef\xbb\xbfA=b\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		env, err := parseEnv("e", src)
		if err != nil {
			checkFaults(t, src, err)
			return
		}
		var again strings.Builder
		for _, pair := range env {
			name, value, _ := strings.Cut(pair, "=")
			again.WriteString(name + "='" + strings.ReplaceAll(value, "'", `'\'`) + "'\n")
		}
		if strings.Contains(again.String(), `\'`) {
			return // single quotes cannot hold one
		}
		env2, err := parseEnv("e", []byte(again.String()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(env, env2); diff != "" {
			t.Error(diff)
		}
	})
}
