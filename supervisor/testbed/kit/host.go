package kit

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"understudy/supervisor/testbed/must"
)

// Host is a machine: it has a machine id and a boot id of its own and, unless it is a Machine, a network of its own.
type Host struct {
	Name string
	Cable

	ids    string // the folder of the files mounted over the real ids
	group  string // its cgroup, once it has been powered on
	booted int
}

// Host adds a machine with a network of its own. It goes with the lab.
func (l *Lab) Host(tb testing.TB, name string) *Host {
	tb.Helper()
	h := l.Machine(tb, name)
	l.mu.Lock()
	l.hosts++
	n := l.hosts
	l.mu.Unlock()
	h.Addr = l.address(10 + n)
	h.ns, h.port = l.name(fmt.Sprint("h", n)), l.name(fmt.Sprint("p", n))
	in := "ip -n " + h.ns + " "
	err := script(
		"ip netns add "+h.ns,
		"ip link add "+h.port+" type veth peer name eth0 netns "+h.ns,
		"ip link set "+h.port+" master "+l.bridge+" up",
		in+"link set lo up",
		in+"addr add "+h.Addr+"/16 dev eth0",
		in+"link set eth0 up",
	)
	if err != nil {
		tb.Fatalf("make host %s: %v", name, err)
	}
	return h
}

// Machine adds a machine that shares the test's network. It is cheaper than a host.
func (l *Lab) Machine(tb testing.TB, name string) *Host {
	tb.Helper()
	ids, err := os.MkdirTemp(tb.TempDir(), name+"-")
	must.OK(tb, err)
	h := &Host{Name: name, Cable: Cable{Addr: l.Addr(), lab: l}, ids: ids}
	must.OK(tb, h.write("machine-id", newID()))
	h.Reboot(tb)
	return h
}

// Here is no machine of its own: what runs there runs beside the test.
func (l *Lab) Here(name string) *Host { return &Host{Name: name, Cable: Cable{Addr: l.Addr(), lab: l}} }

// Reboot gives the host a new boot id. It holds for what is started from now on; killing the rest is the test's part.
func (h *Host) Reboot(tb testing.TB) {
	tb.Helper()
	h.booted++
	id := newID()
	must.OK(tb, h.write(h.bootFile(), id[:8]+"-"+id[8:12]+"-"+id[12:16]+"-"+id[16:20]+"-"+id[20:]))
}

func (h *Host) bootFile() string { return fmt.Sprint("boot-id-", h.booted) }

func (h *Host) write(name, text string) error {
	return os.WriteFile(filepath.Join(h.ids, name), []byte(text+"\n"), 0o444)
}

// enter mounts the identity and becomes the command; the process id stays the same all the way.
const enter = `mount --bind "$1/machine-id" /etc/machine-id || exit 99
mount --bind "$1/$2" /proc/sys/kernel/random/boot_id || exit 99
[ -z "$3" ] || echo $$ >"$3/cgroup.procs" || exit 99
shift 3; exec "$@"`

// Wrap makes a command run on the host.
func (h *Host) Wrap(cmd *exec.Cmd) {
	if h.ids == "" {
		return
	}
	args := []string{"nsenter"}
	if h.ns != "" {
		args = append(args, "--net=/run/netns/"+h.ns)
	}
	args = append(args, "unshare", "--mount", "sh", "-c", enter, "sh", h.ids, h.bootFile(), h.group, cmd.Path)
	cmd.Args = append(args, cmd.Args[1:]...)
	cmd.Path, cmd.Err = "/usr/bin/nsenter", nil
	if path, err := exec.LookPath("nsenter"); err == nil {
		cmd.Path = path
	}
}

// Command is exec.Command on the host.
func (h *Host) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	h.Wrap(cmd)
	return cmd
}

func newID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// Network is the path of the host's network namespace.
func (h *Host) Network() string { return "/run/netns/" + h.ns }
