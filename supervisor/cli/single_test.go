package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
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
