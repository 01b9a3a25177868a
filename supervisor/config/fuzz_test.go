package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func FuzzLoad(f *testing.F) {
	for _, test := range broken {
		f.Add([]byte(test.src))
	}
	f.Add([]byte(small))
	f.Add([]byte(full))
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 16<<10 {
			return // only the time would grow
		}
		cfg, err := Load("u.yaml", src)
		if err != nil {
			checkFaults(t, src, err)
			return
		}
		if err := cfg.Validate(); err != nil {
			t.Fatalf("what was loaded is not valid: %v", err)
		}
		checkRoundTrip(t, cfg)
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
		if fault.Line < 1 || fault.Line > lines+1 || fault.Column < 1 || fault.Message == "" {
			t.Errorf("out of place: %v", fault)
		}
	}
}

func checkRoundTrip(t *testing.T, cfg *Config) {
	t.Helper()
	text, err := Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load("effective.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(cfg, again); diff != "" {
		t.Fatalf("%s\n%s", diff, text)
	}
}

func TestWhatIsLoadedRoundTrips(t *testing.T) {
	sources := map[string]string{"small": small, "full": full, "odd": head + `services:
  a.b@c:d: {command: ["\0x01", " lead", "trail ", "a\nb\n\n", "\n", "", "~", "null", "<<", "\u2028\u0085\uFEFF", "- a", "#", "1e3", "0x10", "é漢😀"], env: {A: "\t\n x", "a b.c": "", "<<": x, "~": y}, stop_signal: 34}
`}
	names, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources[filepath.Base(name)] = string(text)
	}
	for name, src := range sources {
		t.Run(name, func(t *testing.T) {
			cfg, err := Load(name, []byte(strings.ReplaceAll(src, `"\0x01"`, `x`)))
			if err != nil {
				t.Fatal(err)
			}
			checkRoundTrip(t, cfg)
		})
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
