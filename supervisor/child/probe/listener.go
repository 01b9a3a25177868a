package probe

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/supervisor/child/box"
)

// Stranger is who answers at an address of this host in place of a program that was started at since: a process of another systemd unit
// that ran before. "": none, or that is not known. A process that is started later may serve on the program's behalf, as a container's
// does.
func Stranger(address string, since time.Duration) string {
	return otherListener(address, since, nil, systemdUnit)
}

// Squatter is Stranger where ours does not run: also for addresses that are to be set on this host, as who listens at all addresses answers
// there then. A program of another supervisor does not count: it may be this service, of another node.
func Squatter(address string, since time.Duration, toBeSet []netip.Addr) string {
	return otherListener(address, since, toBeSet, func(pid string) string {
		unit := systemdUnit(pid)
		text, err := os.ReadFile("/proc/" + pid + "/cgroup")
		if pid != "self" && (err != nil || strings.HasPrefix(box.CgroupOf(string(text)), unit+"/understudy/")) {
			return ""
		}
		return unit
	})
}

// Taken reports whether a program answers at an address of this host.
func Taken(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if host == "localhost" {
		host = "127.0.0.1"
	}
	at, bad := netip.ParseAddr(host)
	if err != nil || bad != nil || !isLocal(at) {
		return false
	}
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

func otherListener(address string, since time.Duration, toBeSet []netip.Addr, unitOf func(pid string) string) string {
	own := unitOf("self")
	host, port, err := net.SplitHostPort(address)
	if own == "" || err != nil {
		return ""
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	at, err := netip.ParseAddr(host)
	number, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || !isLocal(at) && !slices.Contains(toBeSet, at) {
		return ""
	}
	sockets := listeners(netip.AddrPortFrom(at.Unmap(), uint16(number)))
	if len(sockets) == 0 {
		return ""
	}
	var found string
	err = box.EachProcess(func(s box.Stat) error {
		if !holdsSocket(s.Pid, sockets) {
			return nil
		}
		unit := unitOf(strconv.Itoa(s.Pid))
		if unit == "" || unit == own || time.Duration(s.Start)*time.Second/clockTicks >= since {
			found = ""
			return errOurs
		}
		found = fmt.Sprintf("%s (pid %d, %s)", s.Comm, s.Pid, filepath.Base(unit))
		return nil
	})
	if err != nil {
		return ""
	}
	return found
}

// errOurs ends a search: a process that may be ours listens, too.
var errOurs = fmt.Errorf("a process of this service listens")

// clockTicks are those of /proc in a second, on every architecture that Go knows.
const clockTicks = 100

// systemdUnit is the cgroup of the systemd unit that a process belongs to; "" for one that belongs to none.
func systemdUnit(pid string) string {
	text, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return ""
	}
	parts := strings.Split(box.CgroupOf(string(text)), "/")
	i := slices.IndexFunc(parts, func(name string) bool {
		return strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope")
	})
	if i < 0 {
		return ""
	}
	return strings.Join(parts[:i+1], "/")
}

func isLocal(at netip.Addr) bool {
	if at.IsLoopback() || at.IsUnspecified() {
		return true
	}
	all, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(all, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr() == at
	})
}

// listeners are the inodes of the sockets that listen at an address, or at all addresses with its port.
func listeners(at netip.AddrPort) map[string]bool {
	const listening = "0A"
	found := map[string]bool{}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) < 10 || fields[3] != listening {
				continue
			}
			host, port, _ := strings.Cut(fields[1], ":")
			n, err := strconv.ParseUint(port, 16, 16)
			if err != nil || uint16(n) != at.Port() {
				continue
			}
			if a := kernelAddr(host); a == at.Addr() || a.IsUnspecified() {
				found["socket:["+fields[9]+"]"] = true
			}
		}
	}
	return found
}

// kernelAddr reads an address as /proc has it: words of 32 bits, in this machine's order, which is little-endian wherever this runs.
func kernelAddr(text string) netip.Addr {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw)%4 != 0 {
		return netip.Addr{}
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	a, _ := netip.AddrFromSlice(raw)
	return a.Unmap()
}

func holdsSocket(pid int, sockets map[string]bool) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	names, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(names, func(e os.DirEntry) bool {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		return err == nil && sockets[to]
	})
}
