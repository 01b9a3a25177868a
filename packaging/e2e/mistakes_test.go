package e2e

import (
	"regexp"
	"strings"
	"testing"

	"understudy/supervisor/testbed/kit"
)

// forged is a line that a program writes, and that looks like one of the supervisor's.
const forged = "[ERROR] understudy: lock lost: service=hello token=7"

// mistakes are told where one looks first, and mending them is enough.
func (p *pair) mistakes(t *testing.T) {
	active, m, _ := p.settled(t)
	active.do(t, "journalctl", "--sync")
	for who, wanted := range map[string]bool{"hello": true, "understudy": false} {
		said := active.do(t, "journalctl", "--no-pager", "--boot", "--output=cat", "--unit=understudy", "--identifier="+who)
		if strings.Contains(said, forged) != wanted || !strings.Contains(said, "\n") {
			t.Errorf("the journal has what the program wrote as %s's: %v\n%s", who, !wanted, said)
		}
	}
	m.do(t, "sh", "-c", "echo 'servces: {}' >/etc/understudy/conf.d/bad.yaml")
	if _, err := m.try("systemctl", "restart", "understudy"); err == nil {
		t.Error("a supervisor starts whose config is wrong")
	}
	const want = `/etc/understudy/conf.d/bad.yaml:1:1: servces: unknown key (did you mean "services"?)`
	kit.Until(t, kit.Soon, "systemctl status says why", func() bool { return m.show(t, "understudy", "StatusText") == want })
	m.do(t, "rm", "/etc/understudy/conf.d/bad.yaml")
	p.settled(t)
	for _, unit := range []string{"understudy@nothing", "understudy@empty"} {
		m.write(t, "/etc/understudy/instances/empty.env", "UNDERSTUDY_ZK=zk1:2181\n")
		if _, err := m.try("systemctl", "start", unit); err == nil {
			t.Errorf("%s starts", unit)
		}
		m.do(t, "systemctl", "stop", unit)
	}
	m.do(t, "rm", "/etc/understudy/instances/empty.env")
	m.do(t, "journalctl", "--sync") // what was said just now is in it
	journal := m.do(t, "journalctl", "--no-pager", "--boot", "--output=cat", "--unit=understudy@*")
	for _, line := range []string{"/etc/understudy/instances/nothing.env is missing. Write COMMAND= and UNDERSTUDY_ZK= into it", "understudy: no COMMAND follows `--`"} {
		if !strings.Contains(journal, line) {
			t.Errorf("the journal does not say %q", line)
		}
	}
	// How grave a line is, the journal knows.
	if grave := m.do(t, "journalctl", "--no-pager", "--boot", "--output=cat", "--unit=understudy", "--priority=warning"); strings.Contains(grave, "[INFO]") {
		t.Errorf("what is said only for information is a warning: %s", grave)
	}
	lines := m.do(t, "journalctl", "--no-pager", "--boot", "--output=cat", "--unit=understudy", "--lines=200")
	if !regexp.MustCompile(`(?m)^\[INFO\]  understudy: role: service=hello `).MatchString(lines) {
		t.Errorf("the journal's lines are not as they should be: %s", lines)
	}
}
