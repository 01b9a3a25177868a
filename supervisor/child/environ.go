package child

import (
	"os"
	"slices"
	"strings"
)

// ManagersNames are the names that systemd defines, in the environment of a process that it starts, for sockets, the watchdog and
// notification. They speak to that process alone.
var ManagersNames = []string{
	"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDNAMES", "FDSTORE",
}

// Environ is the environment that a process started from here inherits: this process's own, without what its service manager
// told it alone.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(ManagersNames, name)
	})
}
