package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"understudy/supervisor/testbed/must"
)

// An image is what the disks of machines start from, as the overlay's lower layers. It is made once, and nobody writes to it.
type image func() (layers string, err error)

// debian is a bare Debian as this machine's.
var debian image = sync.OnceValues(func() (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	sites, err := exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages").Output()
	if err != nil {
		return "", err
	}
	release, err := exec.Command("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME").Output()
	if err != nil {
		return "", err
	}
	codename := strings.TrimSpace(string(release))
	for line := range strings.Lines(string(sites)) {
		site, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == codename {
			root := filepath.Join(dir, "debian")
			return root, run(exec.Command("mmdebstrap", "--quiet", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,python3", codename, root, site))
		}
	}
	return "", fmt.Errorf("apt knows no %s", codename)
})

// zookeeper is a Debian with its own ZooKeeper, which starts when the machine boots.
var zookeeper image = sync.OnceValues(func() (layers string, err error) {
	command, err := typed(installDoc, "zookeeper")
	if err != nil {
		return "", err
	}
	return installed("zookeeper", command[0])
})

// installed is a Debian on which a command of apt has run.
func installed(name, command string) (layers string, err error) {
	base, err := debian()
	if err != nil {
		return "", err
	}
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	disk := filepath.Join(dir, name)
	root, err := overlay(base, disk)
	if err != nil {
		return "", err
	}
	defer func() {
		if gone := run(exec.Command("umount", "--recursive", root)); err == nil {
			err = gone
		}
	}()
	// Nothing is started while it is installed, and nobody is there to say yes.
	const around = `set -e
mount -t proc proc /proc
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
printf 'APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\n' >/etc/apt/apt.conf.d/90tests
apt-get -qq update
export DEBIAN_FRONTEND=noninteractive
%s
rm /usr/sbin/policy-rc.d`
	return filepath.Join(disk, "upper") + ":" + base, run(exec.Command("chroot", root, "/bin/sh", "-c", fmt.Sprintf(around, command)))
}

// overlay mounts layers below a new disk that can be written to.
func overlay(layers, disk string) (root string, err error) {
	for _, dir := range []string{"upper", "work", "root"} {
		if err := os.MkdirAll(filepath.Join(disk, dir), 0o755); err != nil {
			return "", err
		}
	}
	root = filepath.Join(disk, "root")
	return root, run(exec.Command("mount", "-t", "overlay", "overlay", "-o", fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%[2]s/work", layers, disk), root))
}

// newDisk is an overlay that goes with the test.
func newDisk(tb testing.TB, from image, dir string) (root string) {
	tb.Helper()
	layers, err := from()
	must.OK(tb, err)
	root, err = overlay(layers, dir)
	must.OK(tb, err)
	tb.Cleanup(func() {
		must.Report(tb, run(exec.Command("umount", "--recursive", root)))
	})
	return root
}
