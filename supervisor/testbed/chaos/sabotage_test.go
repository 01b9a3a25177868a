package main

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/chaos/history"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/zktest"
)

const asMain = "CHAOS_AS_MAIN"

// TestMain lets the test binary be the program under test as well.
func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// The whole of it has to fail, and to say why, when Understudy does not keep its promises.
func TestBrokenUnderstudyIsFoundOut(t *testing.T) {
	kit.NeedHosts(t)
	need.These(t, "cgroup")
	zktest.Need(t)
	places := make(chan struct{}, 2) // more of them at once would have no processor to spare
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-minutes", "1", "-seed", "1", "-only", s.only, "-last", cmp.Or(s.last, "0"), "-sabotage", s.name, "-dir", dir)
			cmd.Env = append(os.Environ(), asMain+"=1")
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.ExitCode() != 1 {
				t.Fatalf("it ended with %v:\n%s", err, out)
			}
			text, err := os.ReadFile(filepath.Join(dir, historyFile))
			k := kept{History: &history.History{}}
			if err == nil {
				err = json.Unmarshal(text, &k)
			}
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			if !slices.ContainsFunc(k.Wrong, func(v history.Violation) bool { return v.What == s.shows }) {
				t.Errorf("no %s is reported:\n%s", s.shows, out)
			}
		})
	}
}
