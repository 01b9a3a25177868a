package e2e

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// upgrade leaves the program alone: the supervisor becomes the new version, as the same process.
func (p *pair) upgrade(t *testing.T) {
	deb := file(t, packages(t, buildNewer), "*_"+runtime.GOARCH+".deb")
	_, other, _ := p.settled(t)
	other.do(t, "systemctl", "disable", "understudy")
	for _, m := range []*machine{p.one, p.two} {
		must.OK(t, run(exec.Command("cp", deb, filepath.Join(m.root, "root/newer.deb"))))
		_, _, run := p.settled(t)
		pid, restarts := m.main(t), m.show(t, "understudy", "NRestarts")
		p.accounts.Silence(t)
		m.do(t, "apt-get", "install", "./newer.deb")
		if now := m.main(t); now != pid || m.show(t, "understudy", "NRestarts") != restarts {
			t.Errorf("the supervisor was process %s, and is %s", pid, now)
		}
		if exe := m.do(t, "readlink", "/proc/"+m.main(t)+"/exe"); exe != "/usr/bin/understudy" {
			t.Errorf("what runs is %s", exe)
		}
		if v := m.do(t, "understudy", "version"); !strings.Contains(v, newer) {
			t.Errorf("after the upgrade: %s", v)
		}
		m.do(t, "grep", "-q", "zk1:2181", "/etc/understudy/understudy.yaml") // the operator's change
		if _, _, now := p.settled(t); now.ID != run.ID || now.Pid != run.Pid {
			t.Errorf("the program was %+v, and is %+v", run, now)
		}
		t.Logf("upgrade of %s: the program is the same, its longest silence was %v", m.Name, p.accounts.Silence(t))
	}
	if out, _ := other.try("systemctl", "is-enabled", "understudy"); out != "disabled" {
		t.Errorf("what the operator has disabled is %s after an upgrade", out)
	}
	other.do(t, "systemctl", "enable", "understudy")
}
