package watchdog

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
	"understudy/supervisor/testbed/must"
)

// machine is an emulated PC on a host, whose network it has. It supervises from its boot on.
type machine struct {
	host    *kit.Host
	shell   net.Conn
	monitor net.Conn

	mu     sync.Mutex // guards resets
	resets []int64    // when its watchdog reset it
}

// boot turns a machine on; it goes with the test. The processor is emulated wherever the test runs: a kernel's KVM may be
// there and not be able to run this one.
func boot(t *testing.T, h *kit.Host, config string) *machine {
	t.Helper()
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Fatalf("qemu-system-x86_64 is missing: %s", remedy)
	}
	kernel, err := vmlinux()
	must.OK(t, err)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	disk(t, in("disk"), config)
	h.Run(t, "qemu-system-x86_64", "-machine", "pc,accel=tcg", "-cpu", "max", "-m", "256", "-nodefaults", "-no-user-config",
		"-display", "none", "-kernel", kernel, "-initrd", in("disk"),
		// The rate of this clock is no estimate, as that of the processor's counter is. And the kernel does not count the timer's
		// interrupts for a moment, to panic when they are too few: the emulator does not run while its host is busy.
		"-append", "console=ttyS0 quiet panic=0 mitigations=off tsc=unstable clocksource=hpet no_timer_check",
		"-serial", "file:"+in("console"), "-serial", "unix:"+in("shell")+",server=on,wait=off",
		"-qmp", "unix:"+in("monitor")+",server=on,wait=off",
		"-netdev", "user,id=net", "-device", "e1000,netdev=net,romfile=",
		"-device", "i6300esb", "-action", "watchdog=reset")
	m := &machine{host: h}
	m.shell, m.monitor = dial(t, in("shell")), dial(t, in("monitor"))
	var listening sync.WaitGroup
	listening.Go(m.listen)
	t.Cleanup(func() {
		m.shell.Close()
		m.monitor.Close()
		listening.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(in("console"))
			t.Logf("story: console of %s:\n%s", h.Name, text)
		}
	})
	m.monit(t, "qmp_capabilities")
	return m
}

func dial(t *testing.T, path string) (conn net.Conn) {
	t.Helper()
	kit.Until(t, soon, "the machine is on", func() (on bool) {
		var err error
		conn, err = net.Dial("unix", path)
		return err == nil
	})
	return conn
}

// monit has the emulator do something.
func (m *machine) monit(t *testing.T, what string) {
	t.Helper()
	if _, err := fmt.Fprintf(m.monitor, "{%q: %q}\n", "execute", what); err != nil {
		t.Fatal(err)
	}
}

// listen stamps what the emulator says of the watchdog, until the monitor is closed.
func (m *machine) listen() {
	for news := json.NewDecoder(m.monitor); ; {
		var said struct{ Event string }
		if err := news.Decode(&said); err != nil {
			return
		}
		if said.Event == "WATCHDOG" {
			m.mu.Lock()
			m.resets = append(m.resets, tick.Now())
			m.mu.Unlock()
		}
	}
}

// reset is when the watchdog reset the machine; that is no more than once.
func (m *machine) reset(t *testing.T) (at int64, was bool) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.resets) > 1 {
		t.Fatalf("the watchdog reset the machine %d times", len(m.resets))
	}
	if len(m.resets) == 0 {
		return 0, false
	}
	return m.resets[0], true
}

// tell has the machine's shell do something from which it does not come back.
func (m *machine) tell(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(m.shell, line); err != nil {
		t.Fatal(err)
	}
}

var answered = regexp.MustCompile(`(?s)^(.*)<(\d+)>\n`)

// do has the machine's shell do something, which has to succeed, and returns what that says. If the emulator stands still for as long as
// the watchdog waits, the machine is reset before the test has done anything to it.
func (m *machine) do(t *testing.T, line string) string {
	t.Helper()
	said, answered := m.ask(t, line)
	if !answered {
		t.Fatalf("%s: the machine was reset meanwhile", line)
	}
	return said
}

// ask is do where the machine may be reset before its shell answers.
func (m *machine) ask(t *testing.T, line string) (said string, ok bool) {
	t.Helper()
	_, before := m.reset(t)
	m.tell(t, line+`; echo "<$?>"`)
	var heard []byte
	b := make([]byte, 512)
	kit.Until(t, soon, "the shell has answered "+line, func() bool {
		must.OK(t, m.shell.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		n, err := m.shell.Read(b)
		heard = append(heard, b[:n]...)
		if answer := answered.FindSubmatch(heard); answer != nil {
			if string(answer[2]) != "0" {
				t.Fatalf("%s: %s", line, heard)
			}
			said, ok = strings.TrimSpace(string(answer[1])), true
			return true
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%s: %v, after %q", line, err, heard)
		}
		_, was := m.reset(t)
		return was && !before
	})
	return said, ok
}

// armed tells whether the kernel takes the device for one that counts.
func (m *machine) armed(t *testing.T) bool {
	t.Helper()
	return m.do(t, "cat /sys/class/watchdog/watchdog0/state") == "active"
}
