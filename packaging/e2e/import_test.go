package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// imported are Debian's units that a user would put under Understudy, and what is to be seen of each when it works.
var imported = []struct{ pkg, unit, works string }{
	{"nginx-light", "nginx", "exec 3<>/dev/tcp/127.0.0.1/80"},
	{"redis-server", "redis-server", "test \"$(redis-cli ping)\" = PONG"},
	{"postgresql", "postgresql@%s-main", "runuser -u postgres -- psql -c 'select 1'"},
	{"haproxy", "haproxy", "pgrep -x haproxy"},
	{"memcached", "memcached", "exec 3<>/dev/tcp/127.0.0.1/11211"},
	{"mosquitto", "mosquitto", "exec 3<>/dev/tcp/127.0.0.1/1883"},
	{"prometheus", "prometheus", "exec 3<>/dev/tcp/127.0.0.1/9090"},
}

// daemons is a Debian with all of them installed and enabled.
var daemons image = sync.OnceValues(func() (string, error) {
	var names []string
	for _, i := range imported {
		names = append(names, i.pkg)
	}
	return installed("daemons", "apt-get install procps "+strings.Join(names, " "))
})

// A program is taken over from its unit as docs/install.md says: import, disable, and it runs under Understudy. Before that, `check`
// names the unit that would run a second copy.
func TestUnitsOfDebianAreImported(t *testing.T) {
	need.These(t, "nspawn")
	dir := packages(t, buildOlder)
	lab := kit.NewLab(t)
	m := boot(t, lab.Host(t, "one"), daemons, nil, func(root string) {
		must.OK(t, run(exec.Command("cp", file(t, dir, "*_"+runtime.GOARCH+".deb"), filepath.Join(root, "root"))))
	})
	m.do(t, "sh", "-c", "dpkg -i /root/understudy_*.deb")
	m.do(t, "systemd-run", "--unit=zk", "understudy", "dev")
	caps, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0)
	raises := err == nil && caps == 1
	version := m.do(t, "sh", "-c", "ls /etc/postgresql")
	for _, i := range imported {
		unit := i.unit
		if strings.Contains(unit, "%s") {
			unit = fmt.Sprintf(unit, version)
		}
		t.Run(unit, func(t *testing.T) {
			lines := commands(t, installDoc, "import") // of redis-server
			if i.unit == "redis-server" && (lines[0] != "systemctl disable --now redis-server" || lines[1] != "understudy import redis-server >/etc/understudy/conf.d/redis.yaml") {
				t.Errorf("docs/install.md has other commands than this test: %q", lines)
			}
			yaml := "/etc/understudy/conf.d/" + strings.TrimSuffix(i.pkg, "-server") + ".yaml"
			m.do(t, "sh", "-c", "understudy import "+unit+" >"+yaml)
			if !raises { // this machine's root may not, and systemd itself would set what it can
				m.do(t, "sed", "-i", "s/nofile: .*/nofile: 1024/; /oom_score_adj:/d", yaml)
			}
			// PostgreSQL and memcached are started by a script, which no unit has in common with a running program.
			if out, err := m.try("sh", "-c", "understudy check 2>&1"); err != nil || i.unit == i.pkg && i.pkg != "memcached" && !strings.Contains(out, "systemctl disable --now "+unit+".service") {
				t.Errorf("check: %v\n%s", err, out)
			}
			m.do(t, "systemctl", "disable", "--now", unit)
			m.do(t, "systemctl", "reload", "understudy")
			kit.Until(t, 30*time.Second, unit+" works under Understudy", func() bool {
				_, err := m.try("sh", "-c", "understudy status | grep -q 'active .*ok'")
				if err == nil {
					_, err = m.try("bash", "-c", i.works)
				}
				return err == nil
			})
			if got := m.show(t, unit, "ActiveState"); got == "active" {
				t.Errorf("the unit is %s", got)
			}
			m.do(t, "systemctl", "stop", "understudy")
			m.do(t, "rm", yaml)
			m.do(t, "systemctl", "start", "understudy")
		})
	}
}
