package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// counter is a program that writes numbered lines, fast also where to start a process, as sleep is, takes its time.
const counter = `command: [sh, -c, 'i=0; while :; do i=$((i+1)); echo "line $i of a program that has much to say"; [ $((i%10)) -ne 0 ] || sleep 0.01; done']`

// numbers reads the numbers of the lines.
func numbers(t *testing.T, text string) []int {
	t.Helper()
	var all []int
	for _, found := range regexp.MustCompile(`line (\d+) `).FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(found[1])
		must(t, err)
		all = append(all, n)
	}
	return all
}

// inARow fails the test where lines are missing, or come twice.
func inARow(t *testing.T, all []int) {
	t.Helper()
	for i := 1; i < len(all); i++ {
		if all[i] != all[i-1]+1 {
			t.Fatalf("line %d follows line %d", all[i], all[i-1])
		}
	}
}

func TestLogsShowsTheOutputOverItsRotations(t *testing.T) {
	for name, compress := range map[string]bool{"plain": false, "compressed": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, stage(t))
			a, service := p.Lab.Machine(t, "a"), p.Options.Service
			log := filepath.Join(t.TempDir(), "out.log")
			path := p.Config(t, a, "", counter, fmt.Sprintf("log: {file: %s, max_size: 8KiB, keep: 50, compress: %v}", log, compress))
			p.FromFile(t, a, path)
			kit.Until(t, soon, "it was rotated", func() bool {
				_, plain := os.Stat(log + ".3")
				_, packed := os.Stat(log + ".3.gz")
				return plain == nil || packed == nil
			})

			r := a.Ask(t, "logs", service, "--config", path, "-n", "500")
			got := numbers(t, r.Out)
			if r.Code != 0 || len(got) != 500 || strings.Count(r.Out, "\n") != 500 || r.Err != "" {
				t.Fatalf("%d lines, code %d, %q", len(got), r.Code, r.Err)
			}
			inARow(t, got)

			term := a.Terminal(t, 24, 80, nil, "logs", service, "--config", path, "-n", "5", "--follow")
			kit.Until(t, 30*time.Second, "many lines came", func() bool { return strings.Count(term.Raw(), "\n") > 1500 })
			text := term.Since(0) // of what comes now the terminal itself throws away what is not read yet
			term.Type(t, "\x03")
			if code := term.ExitCode(t, soon); code != 0 {
				t.Errorf("exit code %d", code)
			}
			inARow(t, numbers(t, text[:strings.LastIndex(text, "\n")]))
		})
	}
}

func TestLogsTellsWhereTheOutputIs(t *testing.T) {
	p := newPlay(t, stage(t))
	a, b, service := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b"), p.Options.Service
	log := filepath.Join(t.TempDir(), "out.log")
	text := []string{"processes:", "  - {name: first, command: [sh, -c, 'echo begun; exec sleep 1000'], log: {file: " + log + "}}", "  - {name: second, command: [sleep, '1000']}"}
	onA, onB := p.Config(t, a, "", text...), p.Config(t, b, "", text...)
	plain := p.Config(t, a, "", kit.Command(p.Child()))
	p.FromFile(t, a, onA)
	kit.Until(t, soon, "a is active", func() bool { l, ok := p.Lock(service); return ok && l.Node == "a" })

	// lines are of stderr; a line break at the end is understood.
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
	expect(0, "begun\n", []string{"the output of second is passed through"}, service, "--config", onA)
	expect(0, "begun\n", nil, service, "--config", onA, "--process", "first")
	kit.Until(t, soon, "it is told where the service is active", func() bool { // as far as ZooKeeper answers quickly
		r := a.Ask(t, "logs", service, "--config", onB, "--process", "first")
		if r.Code != 0 || r.Out != "begun\n" || strings.Count(r.Err, "\n") > 1 {
			t.Fatalf("%+v", r)
		}
		return strings.Contains(r.Err, service+" is active on a now")
	})
	expect(1, "", []string{"journalctl -u understudy"}, service, "--config", onA, "--process", "second")
	expect(1, "", []string{"journalctl -u understudy"}, service, "--config", plain)
	expect(1, "", []string{`no process "frist"; there is: first, second (did you mean "first"?)`}, service, "--config", onA, "--process", "frist")
	expect(1, "", []string{`no service "x"`}, "x", "--config", onA)
	expect(2, "", []string{"/no/such.yaml"}, service, "--config", "/no/such.yaml")
	expect(2, "", []string{"--lines"}, service, "--config", onA, "-n", "-1")

	// Nobody is kept waiting for servers that do not answer.
	expect(0, "begun\n", nil, service, "--config", onB, "--process", "first", "--zk", "127.0.0.1:1")
	must(t, os.Remove(log))
	expect(1, "", []string{"there is no " + log}, service, "--config", onA, "--process", "first")
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
