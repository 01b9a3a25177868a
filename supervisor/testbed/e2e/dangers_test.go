package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// A secret that others can read is told in the log, once, and in the status, as long as it is so.
func TestADangerousSettingIsToldInLogAndStatus(t *testing.T) {
	zk, secret := devServer(t), filepath.Join(t.TempDir(), "token")
	must.OK(t, os.WriteFile(secret, []byte("a-long-enough-token-of-32-letters\n"), 0o600))
	must.OK(t, os.Chmod(secret, 0o644))
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
	kit.Until(t, soon, "another runs", func() bool { return out.count("program started") == 2 })
	if n := out.count(mend); n != 1 {
		t.Errorf("the log tells it %d times", n)
	}
	must.OK(t, os.Chmod(secret, 0o600))
	must.OK(t, cmd.Process.Signal(syscall.SIGHUP))
	kit.Until(t, soon, "status does not tell it any more", func() bool { return !strings.Contains(status(), mend) })
	if text := status("--json"); !strings.Contains(text, `"warnings": []`) {
		t.Errorf("no empty list: %s", text)
	}
}

// A config that another user can write is not run, and one that he can write from now on is not taken up.
func TestAConfigThatOthersCanWriteIsRefusedAtTheStartAndLater(t *testing.T) {
	zk := devServer(t)
	file := configOf(t, zk, idlers(1)...)
	must.OK(t, os.Chmod(file, 0o666))
	cmd, out := started(t, nil, kit.UnderstudyBinary(t), "run", "--config", file)
	if code := exitOf(t, cmd); code != 2 || !out.has("chmod 644 "+file)() {
		t.Errorf("it ended with %d", code)
	}
	checked, said := started(t, nil, kit.UnderstudyBinary(t), "check", "--config", file)
	if code := exitOf(t, checked); code != 2 || !said.has(file+": "+file+" belongs to root and group 0, and its mode 0666 lets others write to it: chmod 644 "+file)() {
		t.Errorf("check ended with %d", code)
	}
	must.OK(t, os.Chmod(file, 0o600))
	cmd, out = started(t, nil, kit.UnderstudyBinary(t), "run", "--config", file)
	kit.Until(t, soon, "it runs", func() bool { return out.count("program started") == 1 })
	hook := filepath.Join(t.TempDir(), "hook")
	must.OK(t, os.WriteFile(hook, []byte("#!/bin/sh\n"), 0o700))
	must.OK(t, os.Chown(hook, 4711, 4711))
	rewrite(t, file, zk, idlers(2)[0], "s1: {command: [sleep, '100000'], hooks: {on_active: "+hook+"}}")
	kit.Until(t, soon, "the change is refused", func() bool { return out.has("not loaded")() && out.has("chown 0 "+hook)() })
	must.OK(t, os.Chown(hook, 0, 0))
	must.OK(t, cmd.Process.Signal(syscall.SIGHUP))
	kit.Until(t, soon, "it is taken up", func() bool { return out.count("program started") == 2 })
}

// The user of a program points its log, and its env_file, at what is root's: nothing is made or read there, and `logs` shows nothing.
func TestRootFollowsNoLinkOfAServicesUser(t *testing.T) {
	need.These(t, "root")
	const user = 4711
	dir := t.TempDir() // on the way to it everybody may search
	must.OK(t, os.Chmod(filepath.Dir(dir), 0o755))
	at := func(name string) string { return filepath.Join(dir, name) }
	must.OK(t, os.Mkdir(at("secret"), 0o700))
	must.OK(t, os.WriteFile(at("secret/env"), []byte("TOKEN=of-root-only\n"), 0o600))
	must.OK(t, os.Mkdir(at("home"), 0o755))
	must.OK(t, os.Symlink("../secret", at("home/logs")))
	must.OK(t, os.Symlink("../secret/env", at("home/env")))
	for _, name := range []string{"home", "home/logs", "home/env"} {
		must.OK(t, os.Lchown(at(name), user, user))
	}
	const program = "user: '4711', group: '4711', command: [sh, -c, 'echo chosen $TOKEN; exec sleep 100000']"
	file := configOf(t, devServer(t), "log: {"+program+", log: {file: "+at("home/logs/app.log")+"}}", "env: {"+program+", env_file: "+at("home/env")+"}")
	_, out := started(t, nil, kit.UnderstudyBinary(t), "run", "--config", file)
	kit.Until(t, soon, "both are refused", func() bool {
		return out.has("cannot write a log")() && out.has("symbolic link of user 4711")() && out.has("env_file")()
	})
	kit.Until(t, soon, "the program runs without its log", func() bool { return out.count("program started") == 1 })
	if out.has("chosen of-root-only")() {
		t.Error("the program was given what is root's")
	}
	entries, err := os.ReadDir(at("secret"))
	must.OK(t, err)
	if len(entries) != 1 {
		t.Errorf("in root's directory there is now %v", entries)
	}
	must.OK(t, os.WriteFile(at("secret/app.log"), []byte("of-root-only\n"), 0o600))
	text, err := exec.Command(kit.UnderstudyBinary(t), "logs", "log", "--config", file).CombinedOutput()
	if err == nil || strings.Contains(string(text), "of-root-only") || !strings.Contains(string(text), "symbolic link of user 4711") {
		t.Errorf("logs: %v, %s", err, text)
	}
	// The user's own folder: what is there now is shown, and not followed by a name that leads elsewhere a moment later.
	own := configOf(t, devServer(t), "log: {"+program+", log: {file: "+at("home/own.log")+"}}")
	must.OK(t, os.WriteFile(at("home/own.log"), []byte("of the program\n"), 0o600))
	if text, err := exec.Command(kit.UnderstudyBinary(t), "logs", "log", "--config", own).Output(); err != nil || string(text) != "of the program\n" {
		t.Errorf("logs: %v, %s", err, text)
	}
	same, err := os.OpenFile(at("home/own.log"), os.O_APPEND|os.O_WRONLY, 0)
	must.OK(t, err)
	defer same.Close()
	_, followed := started(t, nil, kit.UnderstudyBinary(t), "logs", "log", "--config", own, "--follow")
	kit.Until(t, soon, "it is followed", followed.has("of the program"))
	must.OK(t, os.Remove(at("home/own.log")))
	must.OK(t, os.Symlink("../secret/app.log", at("home/own.log")))
	must.OK(t, os.Lchown(at("home/own.log"), user, user))
	_, err = same.WriteString("more of the program\n")
	must.OK(t, err)
	kit.Until(t, soon, "what was opened is followed", followed.has("more of the program"))
	text, err = exec.Command(kit.UnderstudyBinary(t), "logs", "log", "--config", own, "--follow").CombinedOutput()
	if err == nil || strings.Contains(string(text), "of-root-only") || followed.has("of-root-only")() || !strings.Contains(string(text), "refused: "+at("home")) {
		t.Errorf("logs: %v, %s", err, text)
	}
}
