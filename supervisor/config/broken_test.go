package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// With -update the expected faults are written anew: read the difference.
var update = flag.Bool("update", false, "write testdata/*/*.want anew")

// Beside each file that is broken or doubtful stands all that is to be said about it, in this order.
func TestEveryFaultAndDoubtIsNamedWithItsPlace(t *testing.T) {
	for dir, least := range map[string]int{"broken": 200, "doubtful": 10} {
		t.Run(dir, func(t *testing.T) {
			t.Chdir(filepath.Join("testdata", dir))
			names, err := filepath.Glob("*.yaml")
			if err != nil || len(names) < least {
				t.Fatalf("%d files: %v", len(names), err)
			}
			for _, name := range names {
				r := Read(name, "")
				if (r.Config == nil) != (dir == "broken") {
					t.Errorf("%s: %v", name, r.Faults)
				}
				got := ""
				for _, f := range append(r.Faults, r.Warnings...) {
					got += f.String() + "\n"
				}
				golden := strings.TrimSuffix(name, ".yaml") + ".want"
				if *update {
					if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}
