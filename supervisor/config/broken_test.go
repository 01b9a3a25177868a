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
var update = flag.Bool("update", false, "write testdata/broken/*.want anew")

// Beside each broken file stands all that is to be said about it, in this order.
func TestBrokenFileNamesEveryFaultAndItsPlace(t *testing.T) {
	t.Chdir(filepath.Join("testdata", "broken"))
	names, err := filepath.Glob("*.yaml")
	if err != nil || len(names) < 200 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			cfg, err := loadFile(name)
			if err == nil || cfg != nil {
				t.Fatal("was taken")
			}
			got := err.Error() + "\n"
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
				t.Error(diff)
			}
		})
	}
}
