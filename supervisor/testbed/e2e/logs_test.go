package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/child/journal"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

func TestLogsFollowsAFileOverItsRotations(t *testing.T) {
	p := newPlay(t, stage(t))
	a, service := p.Lab.Machine(t, "a"), p.Options.Service
	log := filepath.Join(t.TempDir(), "out.log")
	path := p.Config(t, a, "", `command: [sh, -c, 'i=0; while :; do i=$((i+1)); echo "line $i of a program that has much to say"; sleep 0.02; done']`,
		"log: {file: "+log+", max_size: 4KiB, keep: 3}")
	p.FromFile(t, a, path)
	rotated := func(within string) bool { _, err := os.Stat(log + within); return err == nil }
	kit.Until(t, soon, "there are ten lines", func() bool { text, _ := os.ReadFile(log); return strings.Count(string(text), "\n") > 10 })

	r := a.Ask(t, "logs", service, "--config", path, "-n", "5")
	if r.Code != 0 || strings.Count(r.Out, "\n") > 5 || r.Err != "" {
		t.Fatalf("%+v", r)
	}
	term := a.Terminal(t, 24, 80, nil, "logs", service, "--config", path, "-n", "1", "--follow")
	kit.Until(t, soon, "the log is shown", func() bool { return strings.Contains(term.Raw(), "of a program") })
	kit.Until(t, soon, "it is rotated twice", func() bool { return rotated(".2") })
	from := term.Len()
	kit.Until(t, soon, "what comes then is shown, too", func() bool { return strings.Count(term.Since(from), "of a program") > 10 })
	term.Type(t, "\x03")
	if code := term.ExitCode(t, soon); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} { // however it ends, so does tail
		cmd, out := started(t, nil, kit.UnderstudyBinary(t), "logs", service, "--config", path, "--follow", "--zk", "127.0.0.1:1")
		kit.Until(t, soon, "the log is followed", out.has("of a program"))
		tail := kit.Children(cmd.Process.Pid)
		must.OK(t, cmd.Process.Signal(signal))
		kit.Until(t, soon, "tail has ended", func() bool { return len(tail) == 1 && !kit.Alive(tail[0]) })
		if err := cmd.Wait(); err != nil && signal != syscall.SIGKILL {
			t.Errorf("%v: %v", signal, err)
		}
	}
}

func TestLogsTellsWhereTheOutputIs(t *testing.T) {
	p := newPlay(t, stage(t))
	a, b, service := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b"), p.Options.Service
	log, other := filepath.Join(t.TempDir(), "out.log"), filepath.Join(t.TempDir(), "other.log")
	first := "  - {name: first, command: [sh, -c, 'echo begun; exec sleep 1000'], log: {file: " + log + "}}"
	text := []string{"processes:", first, "  - {name: second, command: [sleep, '1000']}"}
	onA, onB := p.Config(t, a, "", text...), p.Config(t, b, "", text...)
	both := p.Config(t, a, "", "processes:", first, "  - {name: second, command: [sleep, '1000'], log: {file: "+other+"}}")
	alone := p.Config(t, a, "", kit.Command(p.Child()), "log: {file: "+log+"}")
	plain := p.Config(t, a, "", kit.Command(p.Child()))
	p.FromFile(t, a, onA)
	kit.Until(t, soon, "a is active", func() bool { l, ok := p.Lock(service); return ok && l.Node == "a" })

	// lines are of stderr.
	expect := func(code int, out string, err []string, words ...string) {
		t.Helper()
		r := a.Ask(t, append([]string{"logs"}, words...)...)
		if r.Code != code || r.Out != out || strings.Count(r.Err, "\n") != len(err) {
			t.Fatalf("%v: %+v", words, r)
		}
		for _, e := range err {
			if !strings.Contains(r.Err, e) {
				t.Errorf("%v: %q does not say %q", words, r.Err, e)
			}
		}
	}
	kit.Until(t, soon, "there is output", func() bool { s, err := os.Stat(log); return err == nil && s.Size() > 0 })
	head := "==> " + log + " <==\nbegun\n"
	expect(0, head, []string{"second has no log file"}, service, "--config", onA)
	expect(0, "begun\n", nil, service, "--config", alone)
	expect(0, "", nil, service, "--config", alone, "-n", "0")
	expect(0, head, []string{"there is no " + other}, service, "--config", both)
	must.OK(t, os.WriteFile(other, []byte("more\n"), 0o600))
	expect(0, head+"\n==> "+other+" <==\nmore\n", nil, service, "--config", both)
	kit.Until(t, soon, "it is told where the service is active", func() bool { // as far as ZooKeeper answers quickly
		r := a.Ask(t, "logs", service, "--config", onB)
		if r.Code != 0 || r.Out != head || strings.Count(r.Err, "\n") > 2 {
			t.Fatalf("%+v", r)
		}
		return strings.Contains(r.Err, service+" is active on a now") && strings.Contains(r.Err, "another node of this host: name its config with --config if it is not "+onB)
	})
	if !journal.Runs() {
		expect(1, "", []string{"`journalctl -t " + service + " -n 7`"}, service, "--config", plain, "-n", "7")
	}
	expect(1, "", []string{`no service "x"`}, "x", "--config", onA)
	expect(2, "", []string{"--config: /no/such.yaml"}, service, "--config", "/no/such.yaml")

	// Nobody is kept waiting for servers that do not answer.
	expect(0, "begun\n", nil, service, "--config", alone, "--zk", "127.0.0.1:1")
	must.OK(t, os.Remove(log))
	expect(1, "", []string{"there is no " + log}, service, "--config", alone)
	must.OK(t, os.Mkdir(log, 0o700))
	expect(1, "", []string{"is not a regular file"}, service, "--config", alone)
}

// A service without log files: journalctl runs, where there is a journal.
func TestLogsRunsJournalctl(t *testing.T) {
	need.These(t, "root", "namespaces")
	p := newPlay(t, stage(t))
	a, service := p.Lab.Machine(t, "a"), p.Options.Service
	path, bin := p.Config(t, a, "", kit.Command(p.Child())), t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(bin, "journalctl"), []byte("#!/bin/sh\necho journalctl \"$@\"\nexit 7\n"), 0o700))
	shown := exec.Command("unshare", "-m", "sh", "-c", `mount -t tmpfs none /run && mkdir -p /run/systemd/journal && : >/run/systemd/journal/stdout && exec "$@"`, "sh",
		kit.UnderstudyBinary(t), "logs", service, "--config", path, "-n", "7", "--follow", "--zk", "127.0.0.1:1")
	shown.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := shown.Output()
	if want := "journalctl -n 7 -t " + service + " -f\n"; string(out) != want || shown.ProcessState.ExitCode() != 7 {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

// What a program writes is shown to whoever looks at it, and not obeyed by the terminal. A pipe gets it as it is.
func TestNoTerminalObeysAProgram(t *testing.T) {
	p := newPlay(t, stage(t))
	a, service := p.Lab.Machine(t, "a"), p.Options.Service
	log := filepath.Join(t.TempDir(), "out.log")
	const evil = "\x1b]0;owned\x07\x1b[2J[INFO] fine\r\x9b31m\u009b\u202egone\x7f\n"
	path := p.Config(t, a, "", "command: [sh, -c, 'printf \"$SAYS\"; exec sleep 1000']", "log: {file: "+log+"}",
		`env: {SAYS: '\033]0;owned\007\033[2J[INFO] fine\r\23331m\302\233\342\200\256gone\177\n'}`)
	p.FromFile(t, a, path)
	kit.Until(t, soon, "there is output", func() bool { s, err := os.Stat(log); return err == nil && s.Size() > 0 })
	if r := a.Ask(t, "logs", service, "--config", path); r.Out != evil {
		t.Errorf("a pipe got %q, want %q", r.Out, evil)
	}
	for _, words := range [][]string{nil, {"--follow"}} {
		term := a.Terminal(t, 24, 80, nil, append([]string{"logs", service, "--config", path}, words...)...)
		const shown = "^[]0;owned^G^[[2J[INFO] fine^M<9B>31m<U+009B><U+202E>gone^?"
		kit.Until(t, soon, "the log is shown", func() bool { return strings.Contains(term.Raw(), shown) })
		term.Type(t, "\x03")
		_ = term.ExitCode(t, soon)
		if strings.ContainsAny(term.Raw(), "\x1b\x07\u009b\u202e") {
			t.Errorf("a terminal was told %q", term.Raw())
		}
	}
}
