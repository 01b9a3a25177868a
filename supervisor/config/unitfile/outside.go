package unitfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// outside notes what systemd or this host gives the program beside its own settings, and Understudy does not: sockets, accounts, and files.
func (t *translation) outside(argv []string) {
	for _, socket := range t.sockets() {
		t.note("TO DO: systemd opens %s for it, and Understudy passes no sockets. Have the program listen itself: "+
			"systemctl disable --now %s", socket, socket)
	}
	if slices.ContainsFunc(argv, func(word string) bool { return strings.Contains(word, "fd://") }) {
		t.note("TO DO: fd:// in its command is a socket that systemd opens. Write the address or file that it listens on itself, " +
			"as in unix:///run/docker.sock.")
	}
	if yes(t.last("DynamicUser")) {
		t.note("TO DO: DynamicUser=yes: systemd makes a user for it. " +
			"Here it runs as root unless user: names one that exists on every host.")
		t.used["DynamicUser"] = true
	}
}

// sockets are the units that listen in the place of this one.
func (t *translation) sockets() (all []string) {
	named := fields(t.list("Sockets"), t.of("Install", "Also"))
	t.used["Sockets"] = true
	for _, unit := range append(fields(t.of("Install", "Alias")), t.Name) {
		name := strings.TrimSuffix(unit, ".service")
		// The pattern is well formed.
		if enabled, _ := filepath.Glob(filepath.Join(t.root, folders[0], "*.wants", name+".socket")); len(enabled) > 0 {
			named = append(named, name+".socket")
		}
		for _, needed := range fields(t.of("Unit", "Requires"), t.of("Unit", "BindsTo")) {
			if strings.HasPrefix(needed, name) { // not dbus.socket
				named = append(named, needed)
			}
		}
	}
	for _, unit := range named {
		if filepath.Ext(unit) == ".socket" && !slices.Contains(all, unit) {
			all = append(all, unit)
		}
	}
	return all
}

// fields are the words of values that list units.
func fields(values ...[]string) []string {
	return strings.Fields(strings.Join(slices.Concat(values...), " "))
}

// envFile is the one file of variables that a service may have; the unit may do without those marked with "-".
func (t *translation) envFile() (file string) {
	for _, line := range t.values("EnvironmentFile") {
		path, optional := strings.CutPrefix(line, "-")
		_, err := os.Stat(filepath.Join(t.root, path))
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case missing && optional:
			t.lose("EnvironmentFile="+line, "env_file has to exist, and this host does not have it")
		case file != "":
			t.lost = append(t.lost, "EnvironmentFile="+line+" (a service has one env_file)")
		case missing:
			file = path
			t.note("TO DO: %s (EnvironmentFile=) is not on this host, and without it the program does not start.", path)
		default:
			file = path
			if optional {
				t.note("env_file has to exist here; systemd does without it.")
			}
		}
	}
	return file
}
