package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/supervisor/testbed/must"
)

// What `check` warns of in a file, `run` warns of in its flags.
func TestAShortGraceOfASingleCommandIsWarnedOf(t *testing.T) {
	for grace, want := range map[string]string{
		"0s": `warning="--grace: 0s is short: a program on a slow or overloaded host may take longer to die. 500ms at least is safe"`,
		"1s": "",
	} {
		var f runFlags
		f.register(&cobra.Command{})
		f.cluster.ZK, f.node = "zk1", "n"
		if err := f.command.set.Set("grace", grace); err != nil {
			t.Fatal(err)
		}
		l, err := f.single([]string{"sleep", "1"})
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		l.tellDoubts(hclog.New(&hclog.LoggerOptions{Output: &log}))
		if got := log.String(); (got != "") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("--grace %s: %q", grace, got)
		}
	}
}

func TestAServiceIsNotCalledAsItsShellUnasked(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		told bool
	}{{"", []string{"/bin/sh", "-c", "x"}, true}, {"sh", []string{"sh", "-c", "x"}, false}, {"", []string{"sleep", "1"}, false}} {
		var f runFlags
		f.register(&cobra.Command{})
		f.cluster.ZK, f.node = "zk1", "n"
		if c.name != "" {
			must.OK(t, f.command.set.Set("service", c.name))
		}
		l, err := f.single(c.args)
		must.OK(t, err)
		if told := strings.Contains(l.doubts.Error(), "--service: without it this is the service sh"); told != c.told {
			t.Errorf("%v: %v", c, l.doubts)
		}
	}
}
