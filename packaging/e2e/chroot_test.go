package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// Whoever makes the disk of a machine installs where no systemd runs: all is as it has to be when that machine boots.
func TestDebIsInstalledWhereNoSystemdRuns(t *testing.T) {
	need.These(t, "nspawn") // which brings the disk
	root := newDisk(t, debian, t.TempDir())
	must.OK(t, run(exec.Command("cp", file(t, packages(t, buildOlder), "*_"+runtime.GOARCH+".deb"), filepath.Join(root, "root/understudy.deb"))))
	in := func(command string) {
		t.Helper()
		cmd := exec.Command("chroot", root, "/bin/sh", "-ec", command)
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"}
		must.Report(t, run(cmd))
	}
	in("find / -xdev -path /var -prune -o -print | sort >/root/before; getent passwd >/root/users")
	in("dpkg -i /root/understudy.deb; id understudy; test -L /etc/systemd/system/multi-user.target.wants/understudy.service")
	in("mkdir -p /var/log/understudy /etc/systemd/system/multi-user.target.wants; touch /var/log/understudy/hello.log /etc/understudy/conf.d/hello.yaml")
	in("ln -s /lib/systemd/system/understudy@.service /etc/systemd/system/multi-user.target.wants/understudy@hello.service")
	in("dpkg -r understudy; test -e /etc/understudy/conf.d/hello.yaml; dpkg -P understudy; ! test -e /var/log/understudy")
	in("getent passwd | diff /root/users -; find / -xdev -path /var -prune -o -print | grep -v -e '^/root/' -e '^/etc/.*-$' | sort >/tmp/after")
	in("grep -v -e '^/root/' -e '^/etc/.*-$' /root/before >/tmp/before; diff /tmp/before /tmp/after | grep -v -e '^[0-9,acd]*$' -e /tmp >/root/diff || true; cat /root/diff; ! test -s /root/diff")
	if text, err := os.ReadFile(filepath.Join(root, "root/diff")); err != nil || len(text) > 0 {
		t.Errorf("%s %v", text, err)
	}
}
