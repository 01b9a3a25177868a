package e2e

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// drain types what the page has for work on a host, on the active one.
func (p *pair) drain(t *testing.T) {
	active, other, run := p.settled(t)
	for i, line := range commands(t, maintenanceDoc, "drain") {
		active.do(t, "sh", "-c", strings.Replace(line, "db-1", active.Name, 1))
		if i == 0 {
			p.over(t, "drain", run, other, 5*time.Second)
		}
	}
	if now, _, _ := p.settled(t); now != other {
		t.Errorf("%s is active after the work on it", now.Name)
	}
}

// back goes back to the older version, as the page has it, and the program stays as it does in an upgrade.
func (p *pair) back(t *testing.T) {
	active, _, run := p.settled(t)
	deb := file(t, packages(t, buildOlder), "*_"+runtime.GOARCH+".deb")
	must.OK(t, exec.Command("cp", deb, filepath.Join(active.root, "root/understudy_OLD_amd64.deb")).Run())
	pid := active.main(t)
	for _, to := range []struct{ line, version string }{
		{"yes | " + commands(t, maintenanceDoc, "back")[0], older}, {"apt-get install ./newer.deb", newer},
	} {
		active.do(t, "sh", "-c", to.line)
		if v := active.do(t, "understudy", "version"); !strings.Contains(v, to.version) {
			t.Errorf("after %s: %s", to.line, v)
		}
		if now := active.main(t); now != pid {
			t.Errorf("after %s the supervisor is process %s, and was %s", to.line, now, pid)
		}
		if _, _, now := p.settled(t); now.ID != run.ID || now.Pid != run.Pid {
			t.Errorf("after %s the program is %+v, and was %+v", to.line, now, run)
		}
	}
}
