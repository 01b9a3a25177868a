package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// diary is a file to which hooks and processes add lines.
type diary string

func newDiary(t *testing.T) diary { return diary(filepath.Join(t.TempDir(), "diary")) }

// notes is a command that adds a line.
func (d diary) notes(line string) string {
	return fmt.Sprintf(`[sh, -c, 'echo "%s" >> %s']`, line, d)
}

func (d diary) lines() []string {
	text, _ := os.ReadFile(string(d)) // not there: nothing is written yet
	return strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(text)), " ", "_"))
}

func (d diary) text() string { return strings.Join(d.lines(), " ") }

// until waits for the whole of a diary.
func (d diary) until(t *testing.T, want string) {
	t.Helper()
	if !kit.Reached(soon, func() bool { return d.text() == want }) {
		t.Fatalf("the diary says\n%s\nwanted\n%s", d.text(), want)
	}
}

// ordinary is a process of a unit that notes its start and its end.
func (d diary) ordinary(name string) string {
	script := fmt.Sprintf(`trap "echo -%[1]s >> %[2]s; exit" TERM; echo +%[1]s >> %[2]s; while :; do sleep 0.02; done`, name, d)
	return fmt.Sprintf("  - {name: %s, command: [sh, -c, '%s']}", name, script)
}

func (d diary) oneshot(name string) string {
	return fmt.Sprintf("  - {name: %s, command: %s, oneshot: true, undo: %s}", name, d.notes("+"+name), d.notes("-"+name))
}

// serveAlone runs a service on a.
func (p *play) serveAlone(t *testing.T, lines ...string) *kit.Supervisor {
	t.Helper()
	a := p.Lab.Machine(t, "a")
	return p.FromFile(t, a, p.Config(t, a, "", lines...))
}

// What a oneshot did is undone also when its supervisor was killed, and the config of the next one has the service no more.
func TestWhatAServiceOwedThatIsGoneIsUndone(t *testing.T) {
	p, d := brief(t, stage(t)), newDiary(t)
	a := p.Lab.Machine(t, "a")
	file := p.Config(t, a, "", "processes:", d.oneshot("vip"), d.ordinary("web"))
	s := p.FromFile(t, a, file)
	d.until(t, "+vip +web")
	s.Kill9()
	text, err := os.ReadFile(file)
	must.OK(t, err)
	head, _, _ := strings.Cut(string(text), "services:\n")
	must.OK(t, os.WriteFile(file, []byte(head+"services: {"+p.Options.Service+"-other: {command: [sleep, '1000']}}\n"), 0o600))
	next := p.FromFile(t, a, file)
	d.until(t, "+vip +web -vip")
	kit.Until(t, soon, "the other service runs", func() bool { return next.Says("program started", p.Options.Service+"-other") })
}

func TestHooksAreToldTheFacts(t *testing.T) {
	p, d := brief(t, stage(t)), newDiary(t)
	a, b := p.Lab.Machine(t, "a"), p.Lab.Machine(t, "b")
	hooks := fmt.Sprintf("hooks: {on_active: %s, on_standby: %s, on_fence: %s, on_give_up: %s}",
		d.notes("$UNDERSTUDY_NODE active of $UNDERSTUDY_SERVICE"), d.notes("$UNDERSTUDY_NODE standby: $UNDERSTUDY_REASON"),
		d.notes("$UNDERSTUDY_NODE fenced $UNDERSTUDY_FENCED_NODE $UNDERSTUDY_FENCED_RESULT"), d.notes("$UNDERSTUDY_NODE gave up: $UNDERSTUDY_REASON"))
	start := func(h *kit.Host, words ...string) *kit.Supervisor {
		return p.FromFile(t, h, p.Config(t, h, "", kit.Command(p.Child(words...)), hooks, kit.Impatient))
	}
	has := func(line string) {
		t.Helper()
		line = strings.ReplaceAll(line, " ", "_")
		if !kit.Reached(soon, func() bool { return strings.Contains(d.text(), line) }) {
			t.Errorf("no hook said %q, but\n%s", line, strings.Join(d.lines(), "\n"))
		}
	}
	start(a, "crash=100ms")
	has("a standby: supervisor started")
	has("a active of " + p.Options.Service)
	has("a gave up: program failed")
	has("a standby: program failed")
	s := start(b)
	has("b active of")
	p.Unattended(t, s)
	c := p.Lab.Machine(t, "c")
	p.FromFile(t, c, p.Config(t, c, "", kit.Command(p.Child()), hooks))
	has("c fenced b dead")
	has("c active of")
}
