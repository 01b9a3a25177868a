package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// A command whose words were not written has not done what it was asked for.
func TestAFullDiskFailsACommand(t *testing.T) {
	unit := filepath.Join(t.TempDir(), "a.service")
	must.OK(t, os.WriteFile(unit, []byte("[Service]\nExecStart=/bin/sleep 9\n"), 0o600))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must.OK(t, err)
	defer full.Close()
	errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	must.OK(t, err)
	defer errs.Close()
	was := [2]*os.File{os.Stdout, os.Stderr}
	defer func() { os.Stdout, os.Stderr, stdout.err = was[0], was[1], nil }()
	os.Stdout, os.Stderr = full, errs
	for _, args := range [][]string{{"help"}, {"--help"}, {"version"}, {"version", "--json"}, {"import", unit}, {"explain", "lease", "ending"}} {
		stdout.err = nil
		must.OK(t, errs.Truncate(0))
		code := Main("test", "| what | means | do |\n|---|---|---|\n| `lease ending` | x | y |\n", args)
		said, err := os.ReadFile(errs.Name())
		must.OK(t, err)
		if text := strings.TrimLeft(string(said), "\x00"); code != 1 || text != "understudy: write /dev/full: no space left on device\n" {
			t.Errorf("%v: exit code %d, %q", args, code, text)
		}
	}
}
