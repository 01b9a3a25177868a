package mount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

func TestATableOfMountsIsRead(t *testing.T) {
	got, err := parse(`22 1 8:1 / / rw,relatime - ext4 /dev/root rw
36 22 7:0 / /srv/my\040db rw,noatime master:1 shared:2 - xfs /dev/disk/by-id/a\134b rw,inode64
37 22 0:45 /sub /srv/nfs rw - nfs4 server:/export\011x rw
38 22 0:46 / /srv/none rw - tmpfs  rw
39 22 0:47 / /srv/"a"\042 rw - tmpfs x rw
`)
	want := []entry{{"8:1", "/dev/root", "/"}, {"7:0", `/dev/disk/by-id/a\b`, "/srv/my db"}, {"0:45", "server:/export\tx", "/srv/nfs"}, {"0:46", "", "/srv/none"}, {"0:47", "x", `/srv/"a""`}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// A table that cannot be read says neither that something is mounted nor that it is not.
func TestATableThatIsNotUnderstoodSaysNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "22 1 8:1 / / rw\n", "22 1 8:1 / / rw - ext4\n", "22 1 8:1 / rw - ext4 /dev/root rw\n", "22 1 8:1 / / rw - ext4 /dev/root rw\nx\n", "22 1 8:1 / /a\\x rw - ext4 /dev/root rw\n"} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestWhatIsMountedIsToldByDeviceAndDirectory(t *testing.T) {
	ours, other := entry{"7:0", "/dev/none9", "/srv/db"}, entry{"0:3", "tmpfs", "/srv/db"}
	null := entry{"1:3", "/dev/null", "/srv/db"}
	all := func(more ...entry) []entry {
		return append(more, entry{"7:0", "/dev/none9", "/mnt"}, entry{"8:1", "/dev/root", "/"}, entry{"0:3", "tmpfs", "/srv/db/sub"})
	}
	for name, one := range map[string]struct {
		device  string
		table   []entry
		here    int
		others  int
		unknown bool
	}{
		"nothing":             {device: "/dev/none9", table: all()},
		"ours":                {device: "/dev/none9", table: all(ours), here: 1},
		"ours, twice":         {device: "/dev/none9", table: all(ours, ours), here: 2},
		"another's":           {device: "/dev/null", table: all(other), others: 1},
		"both":                {device: "/dev/null", table: all(null, other), here: 1, others: 1},
		"a server's":          {device: "nfs:/x", table: all(entry{"0:9", "nfs:/x", "/srv/db"}), here: 1},
		"another server's":    {device: "nfs:/y", table: all(entry{"0:9", "nfs:/x", "/srv/db"}), others: 1},
		"of a device no more": {device: "/dev/none8", table: all(ours), unknown: true}, // it may be that of another name
	} {
		here, others, err := Mount{Device: one.device, Directory: "/srv/db"}.sort(one.table)
		if len(here) != one.here || len(others) != one.others || (err != nil) != one.unknown {
			t.Errorf("%s: %v, %v, %v", name, here, others, err)
		}
	}
}

// What keeps a file system busy is named: where a program is, what it has open, and what it runs.
func TestWhoUsesADirectoryIsNamed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	if got := users(dir); got != "no program has it open, so an NFS export, a loop device or swap does" {
		t.Error(got)
	}
	cat, err := exec.LookPath("cat")
	must.OK(t, err)
	text, err := os.ReadFile(cat)
	must.OK(t, err)
	must.OK(t, os.WriteFile(filepath.Join(dir, "own cat"), text, 0o755))
	for name, start := range map[string]func(cmd *exec.Cmd){
		"cwd": func(cmd *exec.Cmd) { cmd.Dir = dir },
		"fd": func(cmd *exec.Cmd) {
			f, err := os.Create(filepath.Join(dir, "log"))
			must.OK(t, err)
			t.Cleanup(func() { f.Close() })
			cmd.Stdout = f
		},
		"exe": func(cmd *exec.Cmd) { cmd.Path = filepath.Join(dir, "own cat") },
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(cat)
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			in, err := cmd.StdinPipe()
			must.OK(t, err)
			start(cmd)
			must.OK(t, cmd.Start())
			if got := users(dir); !strings.Contains(got, "cat (pid "+strconv.Itoa(cmd.Process.Pid)+") has it open") {
				t.Error(got)
			}
			in.Close()
			must.Report(t, cmd.Wait())
		})
	}
}

// volume is a loop device with a file system, and a directory for it.
func volume(t *testing.T) Mount {
	t.Helper()
	need.These(t, "loop")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	image, m := filepath.Join(dir, "image"), Mount{Directory: filepath.Join(dir, "my db"), Type: "ext4", Options: "noatime,errors=remount-ro"}
	device := command(t, "sh", "-ec", "truncate -s 16M '"+image+"'; mkfs.ext4 -q '"+image+"'; mkdir '"+m.Directory+"'; exec losetup -f --show '"+image+"'")
	t.Cleanup(func() { command(t, "losetup", "-d", device) })
	m.Device = filepath.Join(dir, "data")
	must.OK(t, os.Symlink(device, m.Device))
	t.Cleanup(func() { _ = syscall.Unmount(m.Directory, 0) }) // the test may have failed
	return m
}

func command(t *testing.T, words ...string) string {
	t.Helper()
	said, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", words, err, said)
	}
	return strings.TrimSpace(string(said))
}

func (m Mount) mounted(t *testing.T) bool {
	t.Helper()
	here, _, err := m.look()
	must.OK(t, err)
	return len(here) > 0
}

func TestAFileSystemIsMountedAndUnmounted(t *testing.T) {
	m := volume(t)
	for range 2 { // the second one finds what is left of the first
		if _, err := m.Up(t.Context()); err != nil || !m.mounted(t) {
			t.Fatal(err)
		}
	}
	if err := os.Remove(m.Device); err != nil { // a name of a device that is lost
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Down(); err != nil || m.mounted(t) {
			t.Fatal(err)
		}
	}
}

func TestAMountOverAnotherOneIsRefused(t *testing.T) {
	m := volume(t)
	other := Mount{Device: "other", Directory: m.Directory, Type: "tmpfs"}
	if _, err := other.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if nothing, err := m.Up(t.Context()); !nothing || err == nil || err.Error() != "other is mounted on "+m.Directory {
		t.Error(nothing, err)
	}
	if err := m.Down(); err != nil || !other.mounted(t) {
		t.Error(err)
	}
	must.Report(t, other.Down())
}

// P2: what is mounted in another place too is not undone by one unmount, and no other host may have it.
func TestADeviceThatIsMountedElsewhereIsNotUndone(t *testing.T) {
	m := volume(t)
	if _, err := m.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	stay := exec.Command("unshare", "--mount", "cat") // with its own mounts
	in, err := stay.StdinPipe()
	must.OK(t, err)
	out, err := stay.StdoutPipe()
	must.OK(t, err)
	must.OK(t, stay.Start())
	_, err = in.Write([]byte("\n"))
	if err == nil {
		_, err = out.Read(make([]byte, 1)) // by then it is cat
	}
	must.OK(t, err)
	if err := m.Down(); err == nil || !strings.Contains(err.Error(), "is in use on this host: cat (pid "+strconv.Itoa(stay.Process.Pid)+") has it mounted on "+m.Directory) {
		t.Error(err)
	}
	in.Close()
	must.Report(t, stay.Wait())
	elsewhere := m
	elsewhere.Directory = t.TempDir()
	if _, err := elsewhere.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if nothing, err := m.Up(t.Context()); nothing || err == nil || !strings.HasSuffix(err.Error(), " has it mounted on "+elsewhere.Directory) {
		t.Error(nothing, err)
	}
	must.Report(t, elsewhere.Down())
	must.Report(t, m.Down())
}

func TestABusyFileSystemIsNotUndone(t *testing.T) {
	m := volume(t)
	if _, err := m.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(m.Directory, "open"))
	must.OK(t, err)
	if err := m.Down(); err == nil || !strings.Contains(err.Error(), m.Directory+" is busy: mount.test (pid "+strconv.Itoa(os.Getpid())+") has it open") {
		t.Error(err)
	}
	f.Close()
	must.Report(t, m.Down())
}

// A watch ends when its file system is mounted no more, whoever has unmounted it, and for no other change of the table.
func TestAnUnmountIsSeen(t *testing.T) {
	m := volume(t)
	if err := m.Watch(t.Context(), nil); err == nil || err.Error() != m.Device+" is not mounted on "+m.Directory {
		t.Error(err)
	}
	watch := func(ctx context.Context) <-chan error {
		t.Helper()
		if _, err := m.Up(ctx); err != nil {
			t.Fatal(err)
		}
		ready, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- m.Watch(ctx, func() error { close(ready); return nil }) }()
		select {
		case <-ready:
		case err := <-done:
			t.Fatal(err)
		}
		return done
	}
	for name, flags := range map[string]int{"unmounted": 0, "unmounted while it is busy": unix.MNT_DETACH} {
		done := watch(t.Context())
		for range 2 {
			other := Mount{Device: "other", Directory: t.TempDir(), Type: "tmpfs"}
			if _, err := other.Up(t.Context()); err != nil {
				t.Fatal(err)
			}
			must.OK(t, other.Down())
		}
		select {
		case err := <-done:
			t.Fatalf("%s: it ends with another one: %v", name, err)
		default:
		}
		must.OK(t, unix.Unmount(m.Directory, flags))
		if err := <-done; err == nil || err.Error() != m.Device+" is not mounted on "+m.Directory {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	done := watch(ctx)
	stop()
	must.Report(t, <-done)
	must.Report(t, m.Down())
}

// What its server does not answer for, or fails, is unmounted all the same, and nothing of it is asked for that.
func TestAFileSystemWithoutItsServerIsUnmounted(t *testing.T) {
	need.These(t, "fuse")
	for name, gone := range map[string]bool{"does not answer": false, "is gone": true} {
		m := Mount{Device: "server:/export", Directory: t.TempDir(), Type: "fuse"}
		server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
		must.OK(t, err)
		defer server.Close()
		m.Options = fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd())
		if _, err := m.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		if gone {
			server.Close()
			if _, err := os.Stat(m.Directory); !errors.Is(err, unix.ENOTCONN) {
				t.Errorf("it has a server: %v", err)
			}
		}
		if err := m.Down(); err != nil || m.mounted(t) {
			t.Errorf("its server %s: %v", name, err)
		}
	}
}

func TestACharacterDeviceIsNoFileSystem(t *testing.T) {
	if err := (Mount{Device: "/dev/null", Directory: t.TempDir(), Type: "ext4"}).Fit(); err == nil || err.Error() != "/dev/null is no block device" {
		t.Error(err)
	}
}
