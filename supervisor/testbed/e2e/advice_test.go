package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// advised waits until the status has all the words, and returns the commands that it advises, each as its words.
func (p *play) advised(t *testing.T, h *kit.Host, words ...string) (commands [][]string) {
	t.Helper()
	said := ""
	kit.Until(t, soon, "the status says "+strings.Join(words, ", "), func() bool {
		said = h.Ask(t, p.asking("status")...).Out
		flat := strings.Join(strings.Fields(said), " ") // wherever the lines are broken
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(flat, w) })
	})
	for line := range strings.Lines(said) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
	for _, c := range regexp.MustCompile(`(?m)^    understudy ((?:.*\\\n)*.*)`).FindAllStringSubmatch(said, -1) {
		commands = append(commands, strings.Fields(strings.ReplaceAll(c[1], "\\\n", " ")))
	}
	return commands
}

// obey runs a command as it is advised.
func obey(t *testing.T, h *kit.Host, command []string) {
	t.Helper()
	if r := h.Ask(t, command...); r.Code != 0 {
		t.Fatalf("what is advised fails: understudy %v: %+v", command, r)
	}
}

func TestWhatTheStatusAdvisesMendsIt(t *testing.T) {
	p := brief(t, stage(t))
	a, b, op := p.Lab.Host(t, "a"), p.Lab.Host(t, "b"), p.Lab.Host(t, "op")
	sick := filepath.Join(t.TempDir(), "sick")
	keys := []string{
		kit.Command(p.Child()), "fencing: {methods: [{exec: {command: [/bin/false], timeout: 1s}}], on_failure: refuse}",
		"restart: {within: 10m}",
		"health: {exec: [test, '!', -e, " + sick + "], interval: 100ms, failures: 100}",
	}
	logged := func(node string) []string {
		return append(keys[:len(keys):len(keys)], "log: {file: "+filepath.Join(t.TempDir(), node+".log")+"}")
	}
	p.FromFile(t, a, p.Config(t, a, "", logged("a")...))
	run := p.On(t, soon, "a", 0)

	if alone := p.advised(t, op, "No standby: a failure of a would stop it. Start understudy on another host with the same config."); len(alone) > 0 {
		t.Errorf("advised: %v", alone)
	}
	p.FromFile(t, b, p.Config(t, b, "", logged("b")...))
	p.Stands(t, b)
	if all := p.advised(t, op, "standby"); len(all) > 0 {
		t.Errorf("advised without a fault: %v", all)
	}

	must.OK(t, os.WriteFile(sick, nil, 0o600))
	logs := p.advised(t, op, "a is unhealthy", "failing", "Its output, on a:")
	if len(logs) != 1 || logs[0][0] != "logs" {
		t.Errorf("advised: %v", logs)
	}
	must.OK(t, os.Remove(sick))
	kit.Until(t, soon, "all is well", func() bool { return len(p.advised(t, op, "standby")) == 0 })

	p.order(t, op, "pause", p.Options.Service, "--reason", "new disks")
	paused := p.advised(t, op, "Automatic takeovers are off (paused by root@", "new disks")
	if len(paused) != 1 {
		t.Fatalf("advised: %v", paused)
	}
	obey(t, op, paused[0])
	p.Stands(t, b)

	a.Cut(t)
	confirm := p.advised(t, op, "DOWN: the program may still run on a", "If you are wrong, two copies run. Then:")
	if len(confirm) != 1 {
		t.Fatalf("advised: %v", confirm)
	}
	kit.Until(t, soon, "the child is dead", func() bool { return len(p.Running()) == 0 })
	kit.Until(t, soon, "its session is over", func() bool { // until then it is refused: it may be back
		there, _, err := p.Conn().Exists(p.Path("nodes", "a"))
		return err == nil && !there
	})
	obey(t, op, confirm[0])
	p.On(t, 2*soon, "b", run.First)
}
