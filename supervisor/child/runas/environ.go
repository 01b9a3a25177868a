package runas

import (
	"os"
	"slices"
	"strings"
)

// ManagersNames are the names that systemd defines, in the environment of a process that it starts, for sockets, the watchdog and
// notification. They are meant for that process alone.
var ManagersNames = []string{
	"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDNAMES", "FDSTORE",
}

// defaultPath is the PATH for programs that inherit none: systemd's own default.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environ is the environment that a process started from here inherits: this process's own, without the names that its
// service manager set for it alone.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(ManagersNames, name)
	})
}

// Inherited is Environ, restricted to these names, and a PATH in any case. nil: all of it.
func Inherited(names []string) []string {
	if names == nil {
		return Environ()
	}
	kept := slices.DeleteFunc(Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(names, name)
	})
	if !slices.ContainsFunc(kept, func(entry string) bool { return strings.HasPrefix(entry, "PATH=") }) {
		kept = append(kept, "PATH="+defaultPath)
	}
	return kept
}
