package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"understudy/supervisor/e2e/kit"
)

// A secret that others can read is told in the log, once, and in the status, as long as it is so.
func TestADangerousSettingIsToldInLogAndStatus(t *testing.T) {
	zk, secret := devServer(t), filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(secret, []byte("a-long-enough-token-of-32-letters\n"), 0o600))
	must(t, os.Chmod(secret, 0o644))
	service := "s: {command: [sleep, '100000'], fencing: {methods: [http: {method: POST, url: 'https://127.0.0.1/off', bearer_file: " + secret + "}]}}"
	file := configOf(t, zk, service)
	cmd, out := started(t, nil, kit.UnderstudyBinary(t), "run", "--config", file)
	mend := "chmod 600 " + secret
	status := func(more ...string) string {
		text, _ := exec.Command(kit.UnderstudyBinary(t), append([]string{"status", "--config", file}, more...)...).CombinedOutput()
		return strings.Join(strings.Fields(string(text)), " ")
	}
	kit.Until(t, soon, "status tells it", func() bool { return strings.Contains(status(), mend) && strings.Contains(status("--json"), mend) })
	rewrite(t, file, zk, service, "another: {command: [sleep, '100000']}")
	kit.Until(t, soon, "another runs", func() bool { return out.count("child started") == 2 })
	if n := out.count(mend); n != 1 {
		t.Errorf("the log tells it %d times", n)
	}
	must(t, os.Chmod(secret, 0o600))
	must(t, cmd.Process.Signal(syscall.SIGHUP))
	kit.Until(t, soon, "status does not tell it any more", func() bool { return !strings.Contains(status(), mend) })
	if text := status("--json"); !strings.Contains(text, `"warnings": []`) {
		t.Errorf("no empty list: %s", text)
	}
}
