package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/zktest"
)

// runtimes are the ways in which containers are commonly run, and how programs are then held.
var runtimes = []struct {
	name      string
	cgroup    string
	readOnly  bool
	confined  bool
	privilege []string // the words that take away what the container is not to have
	held      string   // a line of the log
}{
	{
		name: "default", cgroup: "ro", confined: true,
		privilege: []string{"setpriv", "--inh-caps=-all", "--bounding-set=-all,+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write"},
		held:      "last resort: processes are contained by walking /proc",
	},
	{
		name: "restricted", cgroup: "ro", confined: true, readOnly: true,
		privilege: []string{"setpriv", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--reuid=1234", "--regid=1234", "--clear-groups"},
		held:      "last resort: processes are contained by walking /proc",
	},
	{
		name: "rootless, where users may make namespaces", cgroup: "ro",
		privilege: []string{"setpriv", "--inh-caps=-all", "--bounding-set=-all", "--reuid=1234", "--regid=1234", "--clear-groups"},
		held:      "processes are contained by a PID namespace",
	},
	{
		name: "privileged", cgroup: "rw",
		held: "processes are contained by a cgroup",
	},
}

// container is one that runs, or has ended.
type container struct {
	*kit.Host
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// containers is hosts that run containers of the binary in the package, from one image.
type containers struct {
	stage    *kit.Stage
	accounts *kit.Accounts
	cluster  *kit.Cluster
	entry    []string // as docs/install.md has it
	root     string
}

func newContainers(t *testing.T) *containers {
	t.Helper()
	need.These(t, "nspawn") // which brings the disk
	dir := packages(t, buildOlder)
	w := &containers{stage: kit.NewStage(t, 1, zktest.Config{}), root: newDisk(t, debian, t.TempDir())}
	w.stage.Lab.ProxyAt(t, w.stage.Lab.Addr()+":2181", w.stage.Servers[0])
	w.accounts = kit.NewAccounts(t, w.stage.Lab)
	w.cluster = kit.Look(t, w.stage.Servers, "/understudy")
	text, err := block(installDoc, "container")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ENTRYPOINT", "CMD"} {
		var words []string
		found := regexp.MustCompile(`(?m)^` + name + ` (\[.*\])$`).FindStringSubmatch(text)
		if found == nil || json.Unmarshal([]byte(found[1]), &words) != nil {
			t.Fatalf("docs/install.md has no %s", name)
		}
		w.entry = append(w.entry, words...)
	}
	child := w.accounts.Child("every=2ms", "daemons=2", "chains=1")
	hello := "#!/bin/sh\nexec /usr/local/bin/child dir=/srv/accounts life=/srv/life " + strings.Join(child[3:], " ") + "\n"
	for name, text := range map[string]string{"usr/local/bin/hello": hello, "etc/hosts": w.stage.Lab.Addr() + " zk1 zk2 zk3\n"} {
		if err := os.WriteFile(filepath.Join(w.root, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	err = run(exec.Command("cp", child[0], filepath.Join(w.root, "usr/local/bin/child")))
	if err == nil {
		err = run(exec.Command("cp", filepath.Join(dir, "understudy-"+runtime.GOARCH), filepath.Join(w.root, "usr/bin/understudy")))
	}
	if err == nil {
		err = run(exec.Command("cp", self, filepath.Join(w.root, "usr/bin/"+confinedRole)))
	}
	if err == nil {
		err = os.Chmod(w.accounts.File(""), 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// start runs a container in the way of a runtime.
func (w *containers) start(t *testing.T, h *kit.Host, way int, words ...string) *container {
	t.Helper()
	r := runtimes[way]
	inside := slices.Concat(r.privilege, words)
	if r.confined {
		inside = append([]string{confinedRole, "/usr/bin/env"}, inside...)
	}
	args := []string{"--net=" + h.Network(), "unshare", "--fork", "--kill-child", "--pid", "--mount", "--uts", "--ipc", "--cgroup", "sh", "testdata/container.sh"}
	c := &container{Host: h, cmd: exec.Command("nsenter", append(args, inside...)...), ended: make(chan struct{})}
	readOnly := ""
	if r.readOnly {
		readOnly = "yes"
	}
	c.cmd.Env = append(os.Environ(), "ROOT="+w.root, "NAME="+h.Name, "ACCOUNTS="+w.accounts.File(""), "LIFE="+w.stage.Lab.Lifeline(), "CGROUP="+r.cgroup, "READONLY="+readOnly)
	group := cgroup(t, fmt.Sprintf("%s-%d", h.Name, time.Now().UnixNano()))
	c.cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	log, err := os.CreateTemp(t.TempDir(), "log-")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.log, c.cmd.Stdout, c.cmd.Stderr = log.Name(), log, log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait()
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("story: log of %s:\n%s", h.Name, c.said())
		}
		c.signal(syscall.SIGKILL)
		<-c.ended
	})
	return c
}

func (c *container) said() string {
	text, _ := os.ReadFile(c.log)
	return string(text)
}

// first is the container's first process as it is seen from here.
func (c *container) first() int {
	select {
	case <-c.ended:
		return 0 // its number may be another's by now
	default:
	}
	for _, pid := range kit.Children(c.cmd.Process.Pid) {
		return pid
	}
	return 0
}

func (c *container) signal(sig syscall.Signal) {
	if pid := c.first(); pid > 0 {
		kit.Signal(sig, pid)
	}
}

// code waits for the end of the container.
func (c *container) code(t *testing.T) int {
	t.Helper()
	kit.Until(t, kit.Soon, "the container has ended", func() bool {
		select {
		case <-c.ended:
			return true
		default:
			return false
		}
	})
	return c.cmd.ProcessState.ExitCode()
}

// inContainer starts a process in a container, as `docker exec` does.
func (c *container) inContainer(t *testing.T, words ...string) {
	t.Helper()
	if err := run(exec.Command("nsenter", append([]string{"--target", fmt.Sprint(c.first()), "--pid", "--mount"}, words...)...)); err != nil {
		t.Error(err)
	}
}

// orphans says whether the container's first process has children that sleep, or that are dead and not buried.
func (c *container) orphans() bool {
	return slices.ContainsFunc(kit.Children(c.first()), func(pid int) bool {
		words := kit.CommandLine(pid)
		return words == "" || strings.HasPrefix(words, "sleep ")
	})
}

// The binary is a container's first process, in each of the ways that containers are commonly run.
func TestContainersFailOver(t *testing.T) {
	w := newContainers(t)
	one, two := w.stage.Lab.Host(t, "one"), w.stage.Lab.Host(t, "two")
	var last kit.Run
	const limit = 5 * time.Second // less than the session would take
	for way, r := range runtimes {
		t.Run(r.name, func(t *testing.T) {
			a := w.start(t, one, way, w.entry...)
			run := w.accounts.On(t, 20*time.Second, "one", last.First)
			b := w.start(t, two, way, w.entry...)
			w.cluster.WaitStandby(t, 10*time.Second, "hello", "two")
			if !strings.Contains(a.said(), r.held) {
				t.Errorf("the log does not say %q", r.held)
			}
			a.inContainer(t, "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do (sleep 0.1 &); done")
			kit.Until(t, kit.Soon, "the orphans are reaped", func() bool { return !a.orphans() })

			a.signal(syscall.SIGTERM) // `docker stop`
			next := w.accounts.On(t, limit, "two", run.First)
			if code := a.code(t); code != 0 {
				t.Errorf("a container that was stopped ends with %d", code)
			}
			stopped := w.gap(next)

			a = w.start(t, one, way, w.entry...)
			w.cluster.WaitStandby(t, 10*time.Second, "hello", "one")
			kit.Signal(syscall.SIGKILL, supervisorOf(t, b))
			last = w.accounts.On(t, limit, "one", next.First)
			if code := b.code(t); code != 128+9 {
				t.Errorf("a container whose supervisor was killed ends with %d", code)
			}
			t.Logf("after %v the other one runs it when stopped, and after %v when the supervisor was killed",
				stopped.Round(time.Millisecond), w.gap(last).Round(time.Millisecond))
			if r.cgroup != "rw" {
				a.signal(syscall.SIGTERM)
				a.code(t)
				return
			}
			// Nobody is left who would end what is in the cgroup, but the first process. The session stays: this way comes last.
			kit.KillAtOnce(append(kit.Children(supervisorOf(t, a)), supervisorOf(t, a))...)
			kit.Until(t, kit.Soon, "what they left is dead", func() bool { return len(w.accounts.Running()) == 0 })
			a.code(t)
		})
	}
	w.accounts.CheckOverlap(t)
}

// gap is for how long nobody ran before a run.
func (w *containers) gap(latter kit.Run) time.Duration {
	runs := w.accounts.Runs()
	i := slices.IndexFunc(runs, func(r kit.Run) bool { return r.ID == latter.ID })
	return kit.Gap(runs[i-1], runs[i])
}

// supervisorOf is the child of the container's first process that bears its name; others are what the program forked.
func supervisorOf(t *testing.T, c *container) int {
	t.Helper()
	for _, pid := range kit.Children(c.first()) {
		if strings.Contains(kit.CommandLine(pid), "/understudy run ") {
			return pid
		}
	}
	t.Fatal("there is no supervisor")
	return 0
}
