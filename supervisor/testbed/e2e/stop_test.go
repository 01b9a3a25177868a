package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// A shell between us and the server is no reason to kill the server unasked; and who does not end in time is killed all the same.
func TestAServerBelowAShellIsAskedToEnd(t *testing.T) {
	for name, c := range map[string]struct {
		then string // what the server does once it is asked
		says string
	}{
		"it ends":         {"sleep 0.3; echo ended >>FILE; exit", "asked\nended\n"},
		"it does not end": {"while :; do sleep 0.1; done", "asked\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, stage(t))
			dir := t.TempDir()
			file, server := filepath.Join(dir, "facts"), filepath.Join(dir, "server")
			text := "trap 'echo asked >>FILE; " + c.then + "' TERM\necho >FILE.up\nwhile :; do sleep 0.02; done\n"
			must.OK(t, os.WriteFile(server, []byte(strings.ReplaceAll(text, "FILE", file)), 0o600))
			s := p.serveAlone(t, "command: [sh, -c, 'sh "+server+"; echo after']", "stop_timeout: 2s")
			kit.Until(t, soon, "the server runs", func() bool { _, err := os.Stat(file + ".up"); return err == nil })
			s.Stop(t)
			if got, _ := os.ReadFile(file); string(got) != c.says {
				t.Errorf("it says %q, not %q", got, c.says)
			}
		})
	}
}
