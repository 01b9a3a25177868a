package ensemble

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// isHere reports whether a server's address is one of this host.
func isHere(server string) bool {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return false
	}
	addresses, _ := net.LookupHost(host)
	ours, _ := net.InterfaceAddrs()
	return slices.ContainsFunc(addresses, func(address string) bool {
		ip := net.ParseIP(address)
		return ip.IsLoopback() || slices.ContainsFunc(ours, func(a net.Addr) bool {
			our, ok := a.(*net.IPNet)
			return ok && our.IP.Equal(ip)
		})
	})
}

// fromFile reads the zoo.cfg of the server with this port, from the command line of its process; nil: there is none that can be read.
func fromFile(proc, port string) facts {
	lines, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "cmdline"))
	for _, name := range lines {
		line, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
		main := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "org.apache.zookeeper.server.") })
		if main < 0 || main+1 >= len(args) {
			continue
		}
		if f := readConfig(filepath.Dir(name), args[main+1]); f.serve(port) {
			return f
		}
	}
	return nil
}

// serve reports whether clients reach the server with these settings at a port.
func (f facts) serve(port string) bool {
	for key, value := range f {
		_, client, _ := strings.Cut(value, ";") // as in server.1=zk1:2888:3888;2181
		if (key == "clientPort" || key == "secureClientPort") && value == port ||
			strings.HasPrefix(key, "server.") && (client == port || strings.HasSuffix(client, ":"+port)) {
			return true
		}
	}
	return false
}

// readConfig reads the zoo.cfg of a process, which may have a root of its own.
func readConfig(process, file string) facts {
	dir := ""
	if !filepath.IsAbs(file) {
		dir, _ = os.Readlink(filepath.Join(process, "cwd"))
	}
	read := func(path string) (facts, error) {
		text, err := os.ReadFile(filepath.Join(process, "root", path))
		if err != nil {
			text, err = os.ReadFile(path)
		}
		return parse(string(text)), err
	}
	f, err := read(filepath.Join(dir, file))
	if err != nil {
		return nil
	}
	if more, err := read(f["dynamicConfigFile"]); err == nil {
		f.add(more)
	}
	f.add(facts{"autopurge.purgeInterval": "0", "maxClientCnxns": "60", "tickTime": "3000"}) // ZooKeeper's defaults
	return f
}

const tmpfs = 0x01021994 // TMPFS_MAGIC

// temporary says why a folder of this host does not outlast its restart; "": it does, as far as one can see.
func temporary(dir string) string {
	for _, folder := range []string{"/tmp", "/var/tmp", "/run", "/var/run", "/dev/shm"} {
		if dir == folder || strings.HasPrefix(dir, folder+"/") {
			return "is in " + folder
		}
	}
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) == nil && uint32(stat.Type) == tmpfs {
		return "is in memory (tmpfs)"
	}
	return ""
}
