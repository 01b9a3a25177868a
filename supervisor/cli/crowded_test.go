package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"understudy/supervisor/testbed/must"
)

// A limit of open files that does not suffice for all services is told by check, and by what the log and the status warn of.
func TestTooFewOpenFilesAreTold(t *testing.T) {
	const inner = "UNDERSTUDY_TEST_INNER"
	if os.Getenv(inner) == "" {
		exe, err := os.Executable()
		must.OK(t, err)
		cmd := exec.Command("sh", "-c", `ulimit -n 136 && exec "$0" "$@"`, exe, "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inner+"=1")
		if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "--- PASS") {
			t.Errorf("%v\n%s", err, text)
		}
		return
	}
	file := filepath.Join(t.TempDir(), "u.yaml")
	for services, want := range map[int]bool{5: false, 6: true} {
		text := "zookeeper: {servers: [zk], trusted_network: true}\nservices:\n"
		for i := range services {
			text += fmt.Sprintf("  s%d: {command: [/bin/true]}\n", i)
		}
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		const told = "open files, 136, suffices for 5 of 6 services: raise it to 146"
		if code, out, errs := says(t, "check", "--config", file); code != 0 || strings.Contains(out+errs, told) != want {
			t.Errorf("check says, of %d services: %s%s", services, out, errs)
		}
		if code, out, errs := says(t, "check", "--elsewhere", "--config", file); code != 0 || strings.Contains(out+errs, told) {
			t.Errorf("check says, for another machine: %s%s", out, errs)
		}
		var flags runFlags
		cmd := &cobra.Command{}
		flags.register(cmd)
		flags.cluster.Config = file
		l, err := flags.file(cmd)
		if err != nil || strings.Contains(fmt.Sprint(l.warnings), told) != want {
			t.Errorf("a start warns, with %d services, of %v, %v", services, l.warnings, err)
		}
	}
}
