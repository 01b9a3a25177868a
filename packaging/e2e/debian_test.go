package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

// The whole life of the package, from a bare machine to a bare machine. One story: each chapter needs the previous.
func TestDebianMachinesFailOver(t *testing.T) {
	p := newPair(t)
	before := p.one.files(t)
	t.Run("install", p.install)
	for _, chapter := range []struct {
		name string
		tell func(*testing.T)
	}{
		{"stop", p.stop}, {"kill the supervisor", p.kill}, {"kill supervisor and guardians", p.killAll}, {"freeze", p.freeze},
		{"restart ZooKeeper", p.restartZooKeeper}, {"by hand", p.byHand}, {"instance", p.instance}, {"hardened", p.hardened}, {"drain", p.drain}, {"upgrade", p.upgrade}, {"back", p.back}, {"upgrade that refuses the config", p.refused},
		{"mistakes", p.mistakes},
	} {
		if t.Failed() {
			return
		}
		t.Run(chapter.name, chapter.tell)
	}
	if t.Failed() {
		return
	}
	t.Run("power off", p.plug)
	t.Run("remove and purge", func(t *testing.T) { p.purge(t, before) })
	p.accounts.CheckOverlap(t)
	p.accounts.CheckTokens(t)
}

func (p *pair) install(t *testing.T) {
	lines := commands(t, readme, "install")
	if len(lines) > 5 {
		t.Errorf("%d commands are too many", len(lines))
	}
	for i, m := range []*machine{p.one, p.two} {
		for k, line := range lines {
			out := m.do(t, "sh", "-c", line)
			if k == 0 { // nothing is configured, and there is no ZooKeeper
				if got := m.do(t, "systemctl", "is-active", "understudy") + m.do(t, "systemctl", "is-enabled", "understudy"); got != "activeenabled" {
					t.Errorf("after the installation the unit is %s", got)
				}
				if got := m.show(t, "understudy", "StatusText"); got != "0 services: 0 active, 0 standby; no session with ZooKeeper" {
					t.Errorf("status %q", got)
				}
			}
			if k == len(lines)-1 && i == 1 {
				t.Logf("%s", out)
			}
		}
	}
	// What the pages' program did is seen from outside; from here on the service is one that keeps an account of itself.
	serves := func(m *machine) bool {
		conn, err := net.DialTimeout("tcp", m.Addr+":8000", time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	kit.Until(t, kit.Soon, "one machine serves port 8000", func() bool { return serves(p.one) != serves(p.two) })
	first, second := p.one, p.two
	if serves(p.two) {
		first, second = p.two, p.one
	}
	first.do(t, "systemctl", "stop", "understudy")
	kit.Until(t, kit.Soon, "the other one serves it", func() bool { return serves(second) && !serves(first) })
	first.do(t, "systemctl", "start", "understudy")
	for _, m := range []*machine{p.one, p.two} {
		m.write(t, "/etc/understudy/conf.d/hello.yaml", "services: {hello: {command: /usr/local/bin/hello --port 80}}\n")
	}
	active, other, _ := p.settled(t)
	kit.Until(t, kit.Soon, "systemd shows who is active", func() bool {
		return active.show(t, "understudy", "StatusText") == "1 service: 1 active, 0 standby" &&
			other.show(t, "understudy", "StatusText") == "1 service: 0 active, 1 standby"
	})
	// A change that is wrong fails the reload, and harms nobody.
	active.do(t, "sh", "-c", "echo 'servces: {}' >/etc/understudy/conf.d/bad.yaml")
	if out, err := active.try("systemctl", "reload", "understudy"); err == nil {
		t.Errorf("a config that is wrong was reloaded: %s", out)
	}
	active.do(t, "rm", "/etc/understudy/conf.d/bad.yaml")
	active.do(t, "systemctl", "reload", "understudy")
}

func (p *pair) stop(t *testing.T) {
	active, other, run := p.settled(t)
	active.do(t, "systemctl", "stop", "understudy")
	p.over(t, "systemctl stop", run, other, 5*time.Second)
	if pids := active.left(t); pids != "" {
		t.Errorf("of the stopped unit there is left: %s", pids)
	}
	active.do(t, "systemctl", "start", "understudy")
}

// left is who is in the unit's cgroup.
func (m *machine) left(t *testing.T) string {
	out, _ := m.try("sh", "-c", "cat $(find /sys/fs/cgroup/system.slice/understudy.service -name cgroup.procs 2>/dev/null) /dev/null")
	return out
}

// main is the supervisor's pid as the machine sees it.
func (m *machine) main(t *testing.T) string { return m.show(t, "understudy", "MainPID") }

func (p *pair) kill(t *testing.T) {
	for range 5 { // it is a race with systemd unless the unit is right
		active, other, run := p.settled(t)
		kit.Signal(syscall.SIGKILL, inside(active, active.main(t)))
		p.over(t, "kill -9", run, other, 4*time.Second) // less than the session would take
		kit.Until(t, kit.Soon, "the supervisor has come again", func() bool {
			return active.show(t, "understudy", "SubState") == "running"
		})
	}
}

func (p *pair) killAll(t *testing.T) {
	active, _, run := p.settled(t)
	supervisor := inside(active, active.main(t))
	pids := append(kit.Children(supervisor), supervisor)
	var watchers []int
	for _, pid := range pids {
		if pid == supervisor || kit.IsGuardian(pid) {
			watchers = append(watchers, pid)
		}
	}
	if len(watchers) != 3 {
		t.Fatalf("supervisor and guardians are %v", watchers)
	}
	kit.KillAtOnce(watchers...)
	at := tick.Now()
	// Nobody could give the lock back. The supervisor that systemd starts next does, with the proof that all is dead.
	next := p.accounts.Next(t, 20*time.Second, run.First)
	took := time.Duration(next.First - at)
	t.Logf("kill -9 of supervisor and guardians: after %v %s runs it", took.Round(time.Millisecond), next.Node)
	if took > 3*time.Second { // less than the lease and the grace delay take
		t.Errorf("kill -9 of supervisor and guardians: after %v %s runs it", took, next.Node)
	}
	for _, r := range p.accounts.Runs() {
		if r.ID == run.ID {
			late := time.Duration(r.Last - at)
			t.Logf("the last of what they left died %v after them", late.Round(time.Millisecond))
			if late > 2*time.Second+kit.Stall {
				t.Errorf("the last of what they left died %v after them", late)
			}
		}
	}
}

// inside is the pid, here, of a process that a machine knows by another.
func inside(m *machine, pid string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(text), "\t"+pid+"\n") {
			continue
		}
		own, _ := os.Readlink(filepath.Join(filepath.Dir(f), "ns/pid"))
		if theirs, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", m.pid)); own == theirs && strings.Contains(string(text), "NSpid:") {
			if regexp.MustCompile(`(?m)^NSpid:.*\t` + pid + `$`).Match(text) {
				n, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
				return n
			}
		}
	}
	return 0
}

// freeze has the watchdog do its work.
func (p *pair) freeze(t *testing.T) {
	active, other, run := p.settled(t)
	active.do(t, "mkdir", "-p", "/run/systemd/system/understudy.service.d")
	active.do(t, "sh", "-c", `printf '[Service]\nWatchdogSec=5s\n' >/run/systemd/system/understudy.service.d/quick.conf`)
	active.do(t, "systemctl", "daemon-reload")
	active.do(t, "systemctl", "restart", "understudy")
	p.over(t, "systemctl restart", run, other, 5*time.Second)
	kit.Throughout(t, 10*time.Second, "the watchdog is fed", func() bool { return active.show(t, "understudy", "NRestarts") == "0" })
	frozen := active.main(t)
	kit.Signal(syscall.SIGSTOP, inside(active, frozen))
	took := kit.Until(t, 13*time.Second+kit.Stall, "the watchdog has replaced the frozen supervisor", func() bool {
		pid := active.main(t)
		return pid != frozen && pid != "0" && active.show(t, "understudy", "SubState") == "running"
	})
	t.Logf("a frozen supervisor is replaced after %v, with WatchdogSec=5s", took.Round(100*time.Millisecond))
	active.do(t, "rm", "-r", "/run/systemd/system/understudy.service.d")
	active.do(t, "systemctl", "daemon-reload")
	active.do(t, "systemctl", "restart", "understudy")
}

// restartZooKeeper is what an upgrade of Debian's ZooKeeper does. With one server alone nobody can be active for long without it.
func (p *pair) restartZooKeeper(t *testing.T) {
	_, _, before := p.settled(t)
	p.zk.do(t, "systemctl", "restart", "zookeeper")
	_, _, after := p.settled(t)
	t.Logf("the same run goes on: %v", after.ID == before.ID)
}

// byHand wraps a command without the unit, as the README has it. A host has one supervisor of its name at a time.
func (p *pair) byHand(t *testing.T) {
	for _, m := range []*machine{p.one, p.two} {
		m.do(t, "systemctl", "stop", "understudy")
		defer m.do(t, "systemctl", "start", "understudy")
	}
	words := strings.Join(commands(t, readme, "run"), "\n")
	for _, m := range []*machine{p.one, p.two} {
		m.do(t, "systemd-run", "--unit=typed", "--property=KillMode=mixed", "sh", "-c", "exec "+words)
		kit.Until(t, kit.Soon, "it is known of "+m.Name, func() bool {
			_, ok := p.cluster.Member("db", m.Name)
			_, held := p.cluster.Lock("db") // the first one has it before the other one begins
			return ok && held
		})
	}
	p.cluster.WaitStandby(t, kit.Soon, "db", p.two.Name)
	if lock, ok := p.cluster.Lock("db"); !ok || lock.Node != p.one.Name {
		t.Errorf("active is %q", lock.Node)
	}
	p.one.do(t, "systemctl", "stop", "typed")
	kit.Until(t, kit.Soon, "the other one has it", func() bool { lock, ok := p.cluster.Lock("db"); return ok && lock.Node == p.two.Name })
	p.two.do(t, "systemctl", "stop", "typed")
}

// instance wraps one command, as root and as somebody else.
func (p *pair) instance(t *testing.T) {
	m := p.one
	m.write(t, "/etc/understudy/instances/solo.env", strings.Join(commands(t, installDoc, "instance"), "\n"))
	for _, user := range []string{"root", "understudy"} {
		m.do(t, "mkdir", "-p", "/run/systemd/system/understudy@.service.d")
		m.write(t, "/run-user.conf", "[Service]\nUser="+user+"\n")
		m.do(t, "mv", "/run-user.conf", "/run/systemd/system/understudy@.service.d/user.conf")
		m.do(t, "systemctl", "daemon-reload")
		m.do(t, "systemctl", "start", "understudy@solo")
		kit.Until(t, kit.Soon, "the instance is active", func() bool {
			lock, ok := p.cluster.Lock("solo")
			return ok && lock.Node == "one-solo"
		})
		kit.Until(t, kit.Soon, "its status shows the program", func() bool {
			out := m.do(t, "systemctl", "status", "--no-pager", "understudy@solo")
			return strings.Contains(out, "sleep 1000") && strings.Contains(out, "contained by a cgroup")
		})
		m.do(t, "systemctl", "stop", "understudy@solo")
		if !p.cluster.NoBreadCrumb("solo") {
			t.Error("a breadcrumb stays")
		}
	}
}

// hardened is the drop-in of the examples, and what systemd says of the unit without it and with it.
func (p *pair) hardened(t *testing.T) {
	docs, err := os.ReadFile(installDoc)
	must.OK(t, err)
	told := regexp.MustCompile(`\*\*([0-9.]+)\*\* \("(\w+)"\)`).FindAllSubmatch(docs, -1)
	if len(told) != 2 {
		t.Fatalf("docs/install.md has figures %q", told)
	}
	figure := func(m *machine, want [][]byte) {
		out := m.do(t, "systemd-analyze", "security", "--no-pager", "understudy.service")
		last := out[strings.LastIndexByte(out, '\n')+1:]
		t.Log(last)
		n := regexp.MustCompile(`: ([0-9.]+) (\w+)`).FindStringSubmatch(last)
		if n == nil || n[2] != string(want[2]) {
			t.Fatalf("docs/install.md says %s", want[0])
		}
		is, _ := strconv.ParseFloat(n[1], 64)
		said, _ := strconv.ParseFloat(string(want[1]), 64)
		if is > said || is < said-0.3 { // systemd's own count changes a little from version to version
			t.Errorf("it is %v, and docs/install.md says %s", is, want[0])
		}
	}
	active, other, run := p.settled(t)
	figure(other, told[0])
	if core := strings.TrimSpace(other.do(t, "systemctl", "show", "--property=LimitCORE", "--value", "understudy.service")); core != "0" {
		t.Errorf("the supervisor's core dumps may have %s bytes", core)
	}
	other.do(t, "mkdir", "-p", "/etc/systemd/system/understudy.service.d")
	other.do(t, "cp", "/usr/share/doc/understudy/examples/hardening.conf", "/etc/systemd/system/understudy.service.d/")
	other.do(t, "systemctl", "daemon-reload")
	other.do(t, "systemctl", "restart", "understudy")
	figure(other, told[1])
	kit.Until(t, kit.Soon, "the hardened unit can hold its programs", func() bool { // the journal hears of it in its own time
		return strings.Contains(other.do(t, "systemctl", "status", "--no-pager", "--full", "understudy"), "contained by a cgroup")
	})
	p.settled(t)
	active.do(t, "systemctl", "stop", "understudy")
	p.over(t, "systemctl stop, to a hardened unit", run, other, 5*time.Second)
	active.do(t, "systemctl", "start", "understudy")
	_, _, run = p.settled(t)
	kit.Signal(syscall.SIGKILL, inside(other, other.main(t)))
	p.over(t, "kill -9 of a hardened unit", run, active, 4*time.Second)
}

func (p *pair) refused(t *testing.T) {
	active, _, run := p.settled(t)
	pid := active.main(t)
	active.do(t, "sh", "-c", "echo 'servces: {}' >/etc/understudy/conf.d/bad.yaml")
	if out := active.do(t, "apt-get", "install", "--reinstall", "./newer.deb"); !strings.Contains(out, "has errors, so supervisors keep running the old version") {
		t.Errorf("apt says nothing of the config: %s", out)
	}
	if now := active.main(t); now != pid {
		t.Errorf("the supervisor was restarted: %s, then %s", pid, now)
	}
	p.cluster.WaitStandby(t, kit.Soon, "hello", p.otherThan(active).Name)
	if r := p.accounts.Next(t, time.Second, 0); r.ID != run.ID {
		t.Error("the program was restarted")
	}
	active.do(t, "rm", "/etc/understudy/conf.d/bad.yaml")
}

func (p *pair) otherThan(m *machine) *machine {
	if m == p.one {
		return p.two
	}
	return p.one
}

// plug pulls the plug of the active machine.
func (p *pair) plug(t *testing.T) {
	active, other, run := p.settled(t)
	active.Cut(t) // a machine without power says nothing on the network
	active.powerOff(t)
	p.over(t, "power off", run, other, 20*time.Second)
}

func (p *pair) purge(t *testing.T, before []string) {
	run := p.accounts.Next(t, time.Second, 0)
	m, _ := p.active(run)
	m.write(t, "/etc/understudy/instances/solo.env", "UNDERSTUDY_ZK=zk1:2181\nCOMMAND=/bin/sleep 1000\nOPTIONS=--lease 2s\n")
	m.do(t, "systemctl", "enable", "--now", "understudy@solo")
	m.do(t, "apt-get", "remove", "-y", "understudy")
	if len(p.accounts.Processes()) > 0 || m.left(t) != "" {
		t.Errorf("after the removal there is left %v %s", p.accounts.Processes(), m.left(t))
	}
	if !p.cluster.NoBreadCrumb("hello") || !p.cluster.NoBreadCrumb("solo") {
		t.Error("the removal leaves breadcrumbs in ZooKeeper")
	}
	m.do(t, "test", "-e", "/etc/understudy/conf.d/hello.yaml") // the operator's
	m.do(t, "apt-get", "purge", "-y", "understudy")
	if diff := cmp.Diff(before, m.files(t)); diff != "" {
		t.Errorf("after the purge: %s", diff)
	}
}

// files lists what a package could leave, accounts of users included. What dpkg backs up at midnight is none of it.
func (m *machine) files(t *testing.T) []string {
	out := m.do(t, "sh", "-c", `find / -xdev \( -path /root -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/log/apt -o -path /var/log/dpkg.log `+
		`-o -path /var/log/journal -o -path /tmp -o -path /var/tmp -o -path '/var/backups/*' -o -path '/var/lib/systemd/*' -o -path '/etc/*-' \) -prune -o -print | sort; `+
		`ls -d /run/understudy /var/lib/systemd/deb-systemd-helper-enabled/*understudy* /etc/systemd/system/*/*understudy* 2>/dev/null; cat /etc/passwd /etc/group`)
	return strings.Split(out, "\n")
}
