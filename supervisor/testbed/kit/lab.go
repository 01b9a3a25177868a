package kit

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/must"
)

// labs keeps the lock files of all labs of this machine, one a slot.
const labs = "/run/understudy-e2e"

// Lab is a private network with hosts on it. Everything a lab makes carries the number of its slot in its name, so that
// the next owner of the slot can clear away what a killed test left behind.
type Lab struct {
	slot   int
	lock   *os.File // held as long as we live
	bridge string

	mu     sync.Mutex // guards the fields below
	hosts  int
	drops  map[pair]bool
	losses map[string]int // in a hundred packets, of a port
}

type pair struct{ from, to string }

// NeedHosts skips the test where hosts cannot be made.
func NeedHosts(tb testing.TB) {
	tb.Helper()
	need.These(tb, "root", "namespaces")
	if _, err := os.Stat("/etc/machine-id"); err != nil {
		tb.Fatal("/etc/machine-id is missing: run systemd-machine-id-setup")
	}
}

// NewLab makes an empty network; it goes with the test.
func NewLab(tb testing.TB) *Lab {
	tb.Helper()
	NeedHosts(tb)
	l := &Lab{drops: map[pair]bool{}, losses: map[string]int{}}
	must.OK(tb, l.takeSlot())
	l.bridge = l.name("br")
	if err := l.sweep(); err != nil {
		tb.Fatalf("clear away a former lab: %v", err)
	}
	tb.Cleanup(func() {
		if err := l.sweep(); err != nil {
			tb.Errorf("clear away the lab: %v", err)
		}
		l.lock.Close()
	})
	err := script(
		// Of its own accord a bridge takes another address with every new port, and hosts that know the previous one lose it.
		"ip link add "+l.bridge+" address 02:00:00:00:00:01 type bridge forward_delay 0 mcast_snooping 0",
		"ip addr add "+l.Addr()+"/16 dev "+l.bridge,
		"ip link set "+l.bridge+" up",
	)
	if err == nil {
		err = l.rules()
	}
	if err != nil {
		tb.Fatalf("make a network: %v", err)
	}
	return l
}

// Addr is the address of the test itself in the lab's network. It is not subject to drops.
func (l *Lab) Addr() string { return l.address(1) }

// Lifeline is a file that stays locked as long as the lab exists.
func (l *Lab) Lifeline() string { return l.lock.Name() }

func (l *Lab) address(n int) string { return fmt.Sprintf("10.%d.%d.%d", 100+l.slot, n/256, n%256) }

func (l *Lab) name(what string) string { return fmt.Sprintf("usd%d%s", l.slot, what) }

func (l *Lab) takeSlot() error {
	if err := os.MkdirAll(labs, 0o755); err != nil {
		return err
	}
	taken, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for l.slot = range 100 {
		f, err := os.OpenFile(filepath.Join(labs, fmt.Sprintf("slot%d", l.slot)), os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || l.foreign(taken) {
			f.Close()
			continue
		}
		l.lock = f
		return nil
	}
	return errors.New("all slots for labs are taken")
}

// foreign tells that the slot's addresses belong to something that is not a lab.
func (l *Lab) foreign(taken []net.Addr) bool {
	if _, err := net.InterfaceByName(l.name("br")); err == nil {
		return false // a previous lab, to be cleared away
	}
	return slices.ContainsFunc(taken, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.Contains(net.ParseIP(l.address(1)))
	})
}

// sweep removes everything that bears the slot's name, and ends the processes left in its namespaces.
func (l *Lab) sweep() error {
	namespaces, err := filepath.Glob("/run/netns/" + l.name("h") + "*")
	if err != nil {
		return err
	}
	for _, path := range namespaces {
		ns := filepath.Base(path)
		pids, _ := exec.Command("ip", "netns", "pids", ns).Output()
		for _, pid := range strings.Fields(string(pids)) {
			if pid == strconv.Itoa(os.Getpid()) {
				continue // a thread of ours has been there
			}
			_ = exec.Command("kill", "-9", pid).Run()
		}
		if err := script("ip netns del " + ns); err != nil {
			return err
		}
	}
	ports, err := filepath.Glob("/sys/class/net/" + l.name("p") + "*")
	if err != nil {
		return err
	}
	for _, port := range ports { // the kernel would do it too, but later
		_ = exec.Command("ip", "link", "del", filepath.Base(port)).Run() // it may be gone by now
	}
	if _, err := net.InterfaceByName(l.bridge); err == nil {
		if err := script("ip link del " + l.bridge); err != nil {
			return err
		}
	}
	_ = exec.Command("nft", "delete table bridge "+l.name("")).Run() // absent most of the time
	return l.sweepGroups()
}

// rules hands the present drops to the kernel, all at once.
func (l *Lab) rules() error {
	table := l.name("")
	var b strings.Builder
	fmt.Fprintf(&b, "table bridge %s {\n set drops { type ipv4_addr . ipv4_addr; }\n", table)
	fmt.Fprintf(&b, " chain forward { type filter hook forward priority 0; policy accept; }\n}\n")
	fmt.Fprintf(&b, "flush chain bridge %s forward\nflush set bridge %s drops\n", table, table)
	for p := range l.drops {
		fmt.Fprintf(&b, "add element bridge %s drops { %s . %s }\n", table, p.from, p.to)
	}
	fmt.Fprintf(&b, "add rule bridge %s forward ip saddr . ip daddr @drops drop\n", table)
	for port, percent := range l.losses {
		chance := fmt.Sprintf("numgen random mod 100 < %d ", percent)
		if percent >= 100 {
			chance = ""
		}
		for _, way := range []string{"iifname", "oifname"} { // of any protocol and any address of the host
			fmt.Fprintf(&b, "add rule bridge %s forward %s %s %sdrop\n", table, way, port, chance)
		}
	}
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(b.String())
	return output(cmd)
}

// script runs simple commands, words divided by blanks, until one fails.
func script(lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		if err := output(exec.Command(words[0], words[1:]...)); err != nil {
			return err
		}
	}
	return nil
}

func output(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
