// Package need skips tests that need what this machine lacks: root's rights, a real ZooKeeper, network namespaces, a browser.
// With CI=true such a test fails instead.
package need

import (
	"os"
	"os/exec"
	"sync"
	"testing"
)

// checks are shell commands that succeed where a thing is there. packaging/test.sh lists the packages that bring what is missing.
var checks = map[string]string{
	"root":          `[ "$(id -u)" = 0 ]`,
	"zookeeper":     `command -v java && [ -e /usr/share/java/zookeeper.jar ] && [ -e /usr/share/java/slf4j-simple.jar ]`,
	"zookeeper-3.9": `[ -e "${XDG_CACHE_HOME:-$HOME/.cache}"/understudy/zookeeper-3.9/zookeeper.jar ]`,
	"namespaces":    `command -v ip && command -v nft && command -v nsenter && unshare --net --mount true`,
	"pidns":         `unshare --pid --fork --mount-proc true`,
	"loop":          `[ "$(id -u)" = 0 ] && [ -c /dev/loop-control ] && command -v losetup && command -v mkfs.ext4`,
	"xfs": `[ "$(id -u)" = 0 ] && [ -c /dev/loop-control ] && command -v mkfs.xfs && command -v xfs_io &&
		{ grep -qw xfs /proc/filesystems || modprobe xfs; }`,
	"fuse":            `[ "$(id -u)" = 0 ] && [ -c /dev/fuse ]`,
	"unconfigured":    `[ ! -e /etc/understudy/understudy.yaml ]`,
	"kazoo":           `/usr/bin/python3 -c 'import kazoo'`, // Debian's, whichever python3 comes first in PATH
	"prometheus":      `command -v promtool`,
	"celery":          `/usr/bin/python3 -c 'import celery'`,
	"shells":          `command -v bash && command -v zsh && command -v fish && test -e /usr/share/bash-completion/bash_completion`,
	"programs":        `command -v redis-server && command -v nginx && command -v arping && ls /usr/lib/postgresql/*/bin/postgres`,
	"sshd":            `command -v sshd && command -v ssh-keygen`,
	"fence-agents":    `command -v fence_dummy`,
	"resource-agents": `[ -x /usr/lib/ocf/resource.d/heartbeat/Dummy ]`,
	"litestream":      `[ -x "${XDG_CACHE_HOME:-$HOME/.cache}"/understudy/litestream/litestream ]`,
	"machine": `command -v qemu-system-x86_64 && command -v xz && command -v busybox &&
		ls "${XDG_CACHE_HOME:-$HOME/.cache}"/understudy/kernel/boot/vmlinuz-*`,
	"lintian": `command -v lintian && command -v man`,
	"rpm":     `command -v rpm && command -v rpmlint`,
	"dnf":     `command -v dnf && command -v createrepo_c`,
	"qemu":    `[ "$(uname -m)" = aarch64 ] || command -v qemu-aarch64`,
	"runc":    `command -v runc && unshare --mount --pid --fork true`,
	"seccomp": `[ -e /usr/share/containers/seccomp.json ]`,
	"nspawn":  `command -v systemd-nspawn && command -v mmdebstrap && unshare --mount --pid --fork true`,
	"cgroup": `mount=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts) && [ -n "$mount" ] &&
		probe="$mount$(sed -n 's/^0:://p' /proc/self/cgroup)/understudy-probe-$$" &&
		mkdir "$probe" && [ -e "$probe/cgroup.kill" ] && rmdir "$probe"`,
}

var found sync.Map // by thing: whether it is there

// Has reports whether this machine has a thing: one of checks, or a command.
func Has(thing string) bool {
	if has, ok := found.Load(thing); ok {
		return has.(bool)
	}
	check, ok := checks[thing]
	if !ok {
		check = "command -v " + thing
	}
	cmd := exec.Command("sh", "-c", check)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	has := cmd.Run() == nil
	found.Store(thing, has)
	return has
}

// These skips the test unless this machine has all the things.
func These(tb testing.TB, things ...string) {
	tb.Helper()
	for _, thing := range things {
		switch {
		case Has(thing):
		case os.Getenv("CI") == "true":
			tb.Fatalf("this machine lacks what the test needs, and CI must not skip it: %s", thing)
		default:
			tb.Skipf("skipped, as this machine lacks: %s", thing)
		}
	}
}
