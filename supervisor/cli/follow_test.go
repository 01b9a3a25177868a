package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/supervisor"
	"understudy/supervisor/testbed/must"
)

// Who logs into the config's directory does not have a thousand services read with each line.
func TestALogBesideTheConfigDoesNotHaveItRead(t *testing.T) {
	dir := t.TempDir()
	file, token, elsewhere := filepath.Join(dir, "u.yaml"), filepath.Join(dir, "token"), filepath.Join(t.TempDir(), "u.yaml")
	text := "zookeeper: {servers: [zk]}\nhttp: {token_file: " + token + "}\nservices:\n  s: {command: [true]}\n"
	write := func(name, text string) {
		t.Helper()
		must.OK(t, os.WriteFile(name, []byte(text), 0o600))
	}
	write(file, text)
	write(token, "secret")
	must.OK(t, os.Link(file, elsewhere))
	var flags runFlags
	cmd := &cobra.Command{}
	flags.register(cmd)
	flags.cluster.Config = file
	l, err := flags.file(cmd)
	must.OK(t, err)
	changes := make(chan supervisor.Change, 1)
	f := &follower{flags: &flags, cmd: cmd, log: hclog.NewNullLogger(), changes: changes, first: l.Config, last: l.Config, sum: l.sum, files: l.files, looked: l.looked}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.run(ctx) }()
	defer func() { cancel(); <-done }()

	change := func(in, text string) { // tells that it watches, too
		t.Helper()
		for range 20 {
			write(in, text)
			select {
			case c := <-changes:
				if c.Fault == "" { // else it was read while it was written
					return
				}
			case <-time.After(patient):
			}
		}
		t.Fatal("a changed config was not read")
	}
	text += "  second: {command: [true]}\n"
	change(file, text)
	for try := 1; ; try++ {
		text += fmt.Sprintf("  s%d: {command: [true]}\n", try)
		write(elsewhere, text) // nobody is told
		write(filepath.Join(dir, "log"), "line\n")
		select {
		case <-changes:
			if try == 5 { // before that, what was told of the first change may be why
				t.Fatal("a log beside the config had it read")
			}
			continue
		case <-time.After(5 * quiet):
		}
		break
	}
	change(token, "a secret that nobody guesses") // a warning may be about it
}
