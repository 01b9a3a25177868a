package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// disk is one file system that each host reaches by a block device of its own, as a disk on a storage network. The kernel takes the devices
// for two disks: only the service keeps both hosts from having it mounted.
type disk struct {
	devices map[string]string // of a host
	mounted map[string]string // files that are there while a host has it mounted, in whatever mount namespace
	dir     string            // where each host mounts it
}

func newDisk(t *testing.T, kind string, hosts ...*kit.Host) *disk {
	t.Helper()
	d := &disk{map[string]string{}, map[string]string{}, filepath.Join(kit.Open(t, t.TempDir()), "data")}
	image := d.dir + ".image"
	must.OK(t, os.Mkdir(d.dir, 0o755))
	must.OK(t, os.WriteFile(image, nil, 0o600))
	must.OK(t, os.Truncate(image, 320<<20)) // XFS refuses smaller ones
	said(t, exec.Command("mkfs."+kind, "-q", image))
	for _, h := range hosts {
		device := said(t, exec.Command("losetup", "--find", "--show", image))
		t.Cleanup(func() { said(t, exec.Command("losetup", "--detach", device)) })
		d.devices[h.Name] = device
		d.mounted[h.Name] = filepath.Join("/sys/fs", kind, filepath.Base(device))
	}
	var both, looks atomic.Int32
	end, ended := make(chan struct{}), make(chan struct{})
	mounted := func(h *kit.Host) bool { _, err := os.Stat(d.mounted[h.Name]); return err == nil }
	go func() {
		defer close(ended)
		again := time.NewTicker(time.Millisecond)
		defer again.Stop()
		for looks.Add(1); ; looks.Add(1) {
			if mounted(hosts[0]) && mounted(hosts[1]) && mounted(hosts[0]) {
				both.Add(1)
			}
			select {
			case <-again.C:
			case <-end:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(end)
		<-ended
		if both.Load() > 0 || looks.Load() < 500 {
			t.Errorf("both hosts had it mounted in %d of %d looks", both.Load(), looks.Load())
		}
	})
	return d
}

func said(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", cmd.Args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// inside runs a command among the mounts of a supervisor.
func inside(sup *kit.Supervisor, words ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{fmt.Sprintf("--mount=/proc/%d/ns/mnt", sup.Pid)}, words...)...)
}

// outlive starts a command that runs until the test ends.
func outlive(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
}

// A file system moves with its service, whatever fails, and is never mounted on both hosts. Guardians unmount it, also after an I/O error, and
// who keeps it busy is named.
func TestAFileSystemMovesWithItsService(t *testing.T) {
	need.These(t, "xfs", "cgroup")
	s, _ := recipe(t, "data")
	d := newDisk(t, "xfs", s.a, s.b)
	for _, h := range s.hosts() {
		s.files[h.Name] = filepath.Join(kit.Open(t, t.TempDir()), h.Name+".yaml")
		must.OK(t, os.WriteFile(s.files[h.Name], fmt.Appendf(nil, `node: %s
zookeeper: {servers: [%s], root: %s, lease: %v}
services:
  %s:
    restart: {delay: 100ms, give_up_after: 1, rejoin_after: 1s}
    stop_timeout: 1s
    processes:
      - {name: db, mount: {device: %s, directory: %s, type: xfs, options: [noatime, nouuid]}}
      - {name: program, command: [sh, -c, "cd %[7]s && echo $UNDERSTUDY_NODE >> ran && sync && exec sleep 1234"]}
`, h.Name, strings.Join(s.Servers, ", "), s.root, session/2, s.service, d.devices[h.Name], d.dir), 0o644))
	}
	sups, ran := map[*kit.Host]*kit.Supervisor{}, ""
	runs := func(what string, h *kit.Host) {
		t.Helper()
		s.role(t, h, "active")
		ran += h.Name + "\n"
		if got := said(t, inside(sups[h], "cat", d.dir+"/ran")) + "\n"; got != ran {
			t.Fatalf("%s: the file system has %q, not %q", what, got, ran)
		}
	}
	up := func(h *kit.Host, role string) {
		t.Helper()
		sups[h] = s.start(t, h)
		s.role(t, h, role)
		outlive(t, inside(sups[h], "sleep", "1000")) // its mounts are the host's, and do not go with its last process
	}
	up(s.a, "active")
	runs("start", s.a)
	up(s.b, "standby")

	kit.Until(t, soon, "its program runs", func() bool { return len(kit.Processes("sleep", d.dir)) == 1 })
	kit.Signal(syscall.SIGKILL, kit.Processes("sleep", d.dir)...)
	runs("program killed", s.b)
	s.role(t, s.a, "standby")

	said(t, inside(sups[s.b], "umount", "--lazy", d.dir)) // under the program
	runs("unmounted by hand", s.a)
	s.role(t, s.b, "standby")
	said(t, inside(sups[s.a], "umount", "--lazy", d.dir))
	runs("unmounted by hand again", s.b)
	s.role(t, s.a, "standby")

	sups[s.b].Kill9() // and its guardians unmount
	runs("supervisor killed", s.a)
	up(s.b, "standby")

	said(t, inside(sups[s.a], "xfs_io", "-x", "-c", "shutdown -f", d.dir))
	if out, err := inside(sups[s.a], "ls", d.dir).CombinedOutput(); err == nil {
		t.Fatalf("it is not shut down: %s", out)
	}
	sups[s.a].Kill9()
	runs("file system shut down and supervisor killed", s.b)
	up(s.a, "standby")

	stranger := inside(sups[s.b], "sh", "-c", "cd "+d.dir+" && exec sleep 1234")
	outlive(t, stranger)
	kit.Until(t, soon, "a stranger is in it", func() bool { return slices.Contains(kit.Processes("sleep", d.dir), stranger.Process.Pid) })
	sups[s.b].Signal(syscall.SIGTERM)
	why := fmt.Sprintf("not undone: db: exit code 1: understudy: %s is busy: sleep (pid %d) has it open, next try in ", d.dir, stranger.Process.Pid)
	kit.Until(t, soon, "the status says who keeps it busy", func() bool {
		m, _ := s.Member(s.service, "b")
		return strings.HasPrefix(m.Why, why)
	})
	must.OK(t, stranger.Process.Kill())
	runs("not busy any more", s.a)
}

// remote is two hosts that mount from a server by a program for its type of file system.
func remote(t *testing.T, limit time.Duration) (s *set, dir string) {
	t.Helper()
	s, _ = recipe(t, "remote")
	dir = filepath.Join(kit.Open(t, t.TempDir()), "data")
	must.OK(t, os.Mkdir(dir, 0o755))
	for _, h := range s.hosts() {
		s.files[h.Name] = filepath.Join(kit.Open(t, t.TempDir()), h.Name+".yaml")
		must.OK(t, os.WriteFile(s.files[h.Name], fmt.Appendf(nil, `node: %s
zookeeper: {servers: [%s], root: %s, lease: %v}
services:
  %s:
    restart: {delay: 100ms}
    processes:
      - {name: db, mount: {device: "server:/export", directory: %s, type: remote}, ready: {timeout: %v}}
      - {name: program, command: [sleep, "1234"]}
`, h.Name, strings.Join(s.Servers, ", "), s.root, session/2, s.service, dir, limit), 0o644))
	}
	return s, dir
}

// helped starts a supervisor on a host, with a script for that program.
func (s *set) helped(t *testing.T, h *kit.Host, script string) *kit.Supervisor {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "mount.remote"), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	at, err := filepath.EvalSymlinks("/sbin")
	must.OK(t, err)
	sup := h.UnderstudyAt(t, "/bin/sh", "-ec", fmt.Sprintf(`mount -t overlay overlay -o lowerdir=%s:%s %[2]s; exec "$0" run --config "$1"`, dir, at), kit.UnderstudyBinary(t), s.files[h.Name])
	s.started = append(s.started, sup)
	return sup
}

// A server that is gone, of which the kernel says so for each question about its file system: guardians unmount that all the same.
func TestAFileSystemWhoseServerIsGoneIsUnmounted(t *testing.T) {
	need.These(t, "fuse")
	s, dir := remote(t, time.Minute)
	// The server is the one that has the device open, and that ends with the script.
	const script = `exec 3<>/dev/fuse; exec mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 "$1" "$2"`
	a := s.helped(t, s.a, script)
	s.role(t, s.a, "active")
	s.says(t, s.a, "ok", "")
	s.helped(t, s.b, script)
	s.role(t, s.b, "standby")
	if out, err := inside(a, "mountpoint", dir).CombinedOutput(); err == nil || !strings.Contains(string(out), "Transport endpoint is not connected") {
		t.Errorf("its server is there: %v: %s", err, out)
	}
	left := inside(a, "sleep", "1000") // its mounts are the host's, and do not go with its last process
	outlive(t, left)
	mounted := func() bool {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", left.Process.Pid))
		must.OK(t, err)
		return strings.Contains(string(table), " "+dir+" ")
	}
	kit.Until(t, soon, "it is mounted", mounted)
	a.Kill9()
	s.role(t, s.b, "active")
	if mounted() {
		t.Error("both hosts have it mounted")
	}
}

// A server that does not answer, as of NFS: a host on which the mount hangs leaves the service to another one after one attempt, and says why.
func TestAServiceLeavesAHostOnWhichItsMountHangs(t *testing.T) {
	s, dir := remote(t, 10*time.Second)
	tries := dir + ".tries"
	s.helped(t, s.a, "echo x >> "+tries+"; exec sleep 1000")
	kit.Until(t, soon, "a mounts", func() bool { _, err := os.Stat(tries); return err == nil })
	b := s.helped(t, s.b, `exec mount -i -t tmpfs "$1" "$2"`) // else a tries again
	s.role(t, s.b, "standby")
	s.says(t, s.a, "failed", "db has not ended within 10s")
	s.role(t, s.b, "active")
	if text, err := os.ReadFile(tries); string(text) != "x\n" {
		t.Errorf("tried on a: %q, %v", text, err)
	}
	said(t, inside(b, "umount", dir))
	kit.Until(t, soon, "it is mounted again", func() bool { return inside(b, "mountpoint", "-q", dir).Run() == nil })
	s.role(t, s.b, "active")
}
