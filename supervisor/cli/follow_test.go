package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/supervisor"
	"understudy/supervisor/service"
	"understudy/supervisor/testbed/must"
)

// Who logs into the config's directory does not have a thousand services read with each line.
func TestALogBesideTheConfigDoesNotHaveItRead(t *testing.T) {
	dir := t.TempDir()
	file, token := filepath.Join(dir, "u.yaml"), filepath.Join(dir, "token")
	text := "zookeeper: {servers: [zk]}\ninclude: [\"*.yml\"]\nhttp: {token_file: " + token + "}\nservices:\n  s: {command: [true]}\n"
	write := func(name, text string) {
		t.Helper()
		must.OK(t, os.WriteFile(name, []byte(text), 0o600))
	}
	write(file, text)
	write(token, "secret")
	write(filepath.Join(dir, "log"), "line\n")
	var flags runFlags
	cmd := &cobra.Command{}
	flags.register(cmd)
	flags.cluster.Config = file
	l, err := flags.file(cmd)
	must.OK(t, err)
	changes := make(chan supervisor.Change, 1)
	f := &follower{flags: &flags, cmd: cmd, log: hclog.NewNullLogger(), changes: changes, first: l.Config, last: l.Config, sum: l.sum, files: l.files,
		newest: l.files, looked: l.looked}
	is := f.state(t.Context())
	write(filepath.Join(dir, "log"), "line\nline\n")
	if now := f.state(t.Context()); now != is {
		t.Error("a log beside the config has it read")
	}
	must.OK(t, os.Chmod(token, 0o644))
	if now := f.state(t.Context()); now == is {
		t.Error("other rights of a file that is looked at are not seen")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.run(ctx) }()
	defer func() { cancel(); <-done }()
	for _, name := range []string{"u.yaml", "more.yml"} {
		write(filepath.Join(dir, name), map[string]string{"u.yaml": text, "more.yml": "services:\n"}[name]+"  "+name[:1]+": {command: [true]}\n")
		for known := false; !known; {
			select {
			case c := <-changes:
				known = slices.ContainsFunc(c.Services, func(v service.Conf) bool { return v.Name == name[:1] })
			case <-time.After(20 * lookEvery):
				t.Fatal(name, "was not read")
			}
		}
	}
}
