package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidFileIsNeverRefused(t *testing.T) {
	names, err := filepath.Glob("testdata/valid/*.yaml")
	if err != nil || len(names) < 40 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			cfg, err := loadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := cfg.Validate(); err != nil {
				t.Errorf("what was loaded is not valid: %v", err)
			}
			checkRoundTrip(t, cfg)
		})
	}
}

// checkRoundTrip writes what was read, and reads it again.
func checkRoundTrip(t *testing.T, cfg *Config) {
	t.Helper()
	text, err := Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	again := newLoader("effective.yaml", disk{}).load(text)
	if again.Err() != nil {
		t.Fatalf("%v\n%s", again.Err(), text)
	}
	if diff := cmp.Diff(cfg, again.Config); diff != "" {
		t.Fatalf("%s\n%s", diff, text)
	}
}

func TestExamplesLoadWithoutAWarning(t *testing.T) {
	names, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := Read(name, "")
		if err := r.Err(); err != nil {
			t.Error(err)
			continue
		}
		for _, w := range r.Warnings {
			t.Error(w)
		}
		checkRoundTrip(t, r.Config)
		const schema = "# yaml-language-server: $schema=../packaging/understudy.schema.json\n"
		if !strings.HasPrefix(string(text), schema) {
			t.Errorf("%s does not name its schema in the first line", name)
		}
	}
}
