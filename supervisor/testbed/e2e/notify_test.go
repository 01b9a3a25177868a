package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// Whoever a program is, or becomes, its READY=1 is heard, in each containment and after an upgrade; and that of a stranger, who tries
// whatever he finds, is not, nor does it fill the log.
func TestReadyIsTheProgramsToSay(t *testing.T) {
	for name, lines := range map[string][]string{
		"a user":               {"command: [SCRIPT]", "user: nobody"},
		"a user in a pidns":    {"command: [SCRIPT]", "user: nobody", "contain: pidns"},
		"root becoming a user": {"command: [setpriv, --reuid, nobody, --regid, nogroup, --clear-groups, SCRIPT]"},
		"root":                 {"command: [SCRIPT]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, stage(t))
			b := kit.Install(t)
			dir := t.TempDir()
			for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
				must.OK(t, os.Chmod(d, 0o755))
			}
			go1, script := filepath.Join(dir, "go"), filepath.Join(dir, "script")
			must.OK(t, os.WriteFile(script, []byte(fmt.Sprintf("#!/bin/sh\nwhile ! test -e %s; do sleep 0.02; done\nsystemd-notify --ready || exit 1\nwhile ! test -e %s2; do sleep 0.02; done\nsystemd-notify --status=upgraded || exit 1\nexec sleep 1000\n", go1, go1)), 0o755))
			one := p.Lab.Machine(t, "a")
			for i := range lines {
				lines[i] = strings.ReplaceAll(lines[i], "SCRIPT", script)
			}
			s := one.UnderstudyAt(t, string(b), "run", "--config", p.Config(t, one, "", append(lines, "ready: {notify: true, timeout: 1m}")...))
			p.Started = append(p.Started, s)
			health := func(want string) func() bool {
				return func() bool {
					m, ok := p.Member(p.Options.Service, "a")
					return ok && m.Role == "active" && m.Health == want
				}
			}
			kit.Until(t, soon, "it is starting", health("starting"))
			stranger := exec.Command("sh", "-c", `cd $UNDERSTUDY_RUN_DIR && for f in $PWD/*/* $PWD/*/socket $(sed -n "s|.* \($PWD/.*\)|\1|p" /proc/net/unix); do
				for i in 1 2 3 4 5; do NOTIFY_SOCKET=$f systemd-notify --ready; done; done 2>/dev/null; true`)
			stranger.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
			out, err := stranger.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			kit.Throughout(t, 300*time.Millisecond, "it is not ready yet", health("starting"))
			if strings.Contains(s.Log(), "notification") {
				t.Error("the stranger was heard")
			}
			must.OK(t, os.WriteFile(go1, nil, 0o644))
			kit.Until(t, soon, "it is ready", health("ok"))
			b.Upgraded(t, s)
			must.OK(t, os.WriteFile(go1+"2", nil, 0o644))
			kit.Throughout(t, 300*time.Millisecond, "it goes on", health("ok"))
			if n := strings.Count(s.Log(), "program started"); n != 1 {
				t.Errorf("it was started %d times", n)
			}
		})
	}
}
