package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// machine is a Debian that was booted, with a network and a disk of its own.
type machine struct {
	*kit.Host
	root string
	pid  int // of its init
	cmd  *exec.Cmd
}

// boot boots a host; prepare may write to its disk before.
func boot(tb testing.TB, h *kit.Host, from image, binds []string, prepare func(root string)) *machine {
	tb.Helper()
	disk := tb.TempDir()
	m := &machine{Host: h, root: newDisk(tb, from, disk)}
	m.write(tb, "/etc/hostname", h.Name+"\n")
	prepare(m.root)
	args := []string{
		"--quiet", "--keep-unit", "--register=no", "--console=pipe", "--boot", "--machine=" + h.Name, "--directory=" + m.root,
		"--network-namespace-path=" + h.Network(),
	}
	for _, bind := range binds {
		args = append(args, "--bind="+bind)
	}
	m.cmd = exec.Command("systemd-nspawn", args...)
	m.cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	m.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup(tb, h.Name).Fd())}
	log, err := os.Create(filepath.Join(disk, "console"))
	must.OK(tb, err)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	must.OK(tb, m.cmd.Start())
	tb.Cleanup(func() {
		if tb.Failed() {
			journal, _ := m.try("journalctl", "--no-pager", "--boot", "--unit=understudy.service", "--unit=understudy@solo.service", "--lines=40")
			tb.Logf("story: journal of %s:\n%s", h.Name, journal)
		}
		m.powerOff(tb)
		log.Close()
	})
	kit.Until(tb, time.Minute, h.Name+" has booted", func() bool {
		m.pid = m.init()
		out, _ := m.try("systemctl", "is-system-running")
		return strings.HasPrefix(out, "running")
	})
	return m
}

// cgroup makes one for a machine: two machines in one would see each other's.
func cgroup(tb testing.TB, name string) *os.File {
	tb.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	must.OK(tb, err)
	mounts, err := os.ReadFile("/proc/mounts")
	must.OK(tb, err)
	path, mount := regexp.MustCompile(`(?m)^0::(.*)$`).FindSubmatch(own), regexp.MustCompile(`(?m)^\S+ (\S+) cgroup2 `).FindSubmatch(mounts)
	if path == nil || mount == nil {
		tb.Fatal("no cgroup v2 here")
	}
	dir := filepath.Join(string(mount[1]), string(path[1]), fmt.Sprintf("understudy-packages-%d-%s", os.Getpid(), name))
	must.OK(tb, os.Mkdir(dir, 0o755))
	f, err := os.Open(dir)
	must.OK(tb, err)
	tb.Cleanup(func() {
		f.Close()
		must.Report(tb, run(exec.Command("find", dir, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+")))
	})
	return f
}

// powerOff pulls the plug.
func (m *machine) powerOff(tb testing.TB) {
	tb.Helper()
	if m.cmd == nil {
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- m.cmd.Wait() }() // it says that its machine was killed
	for again := time.NewTicker(time.Second); ; {
		if pid := m.init(); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-ended:
			m.cmd, m.pid = nil, 0
			again.Stop()
			return
		case <-again.C:
		}
	}
}

// init is the machine's first process: the child of systemd-nspawn that is the init of a PID namespace. Others come before it.
func (m *machine) init() int {
	for _, pid := range kit.Children(m.cmd.Process.Pid) {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if innermost.Match(status) {
			return pid
		}
	}
	return 0
}

var innermost = regexp.MustCompile(`(?m)^NSpid:.*\t1$`)

func (m *machine) write(tb testing.TB, name, text string) {
	tb.Helper()
	must.OK(tb, os.WriteFile(filepath.Join(m.root, name), []byte(text), 0o644))
}

// try runs a command on the machine, and returns what it says.
func (m *machine) try(words ...string) (string, error) {
	if m.pid == 0 {
		return "", errors.New("the machine is off")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	args := append([]string{"--target", fmt.Sprint(m.pid), "--all", "env", "-i", "--chdir=/root", "HOME=/root", "LC_ALL=C.UTF-8",
		"DEBIAN_FRONTEND=noninteractive", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, words...)
	out, err := exec.CommandContext(ctx, "nsenter", args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// do is try for what has to succeed.
func (m *machine) do(tb testing.TB, words ...string) string {
	tb.Helper()
	out, err := m.try(words...)
	if err != nil {
		tb.Fatalf("%s: %s: %v\n%s", m.Name, strings.Join(words, " "), err, out)
	}
	return out
}

// show is one property of a unit.
func (m *machine) show(tb testing.TB, unit, property string) string {
	tb.Helper()
	return m.do(tb, "systemctl", "show", unit, "--property="+property, "--value")
}
