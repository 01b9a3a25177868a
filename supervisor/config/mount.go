package config

import (
	"cmp"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"understudy/supervisor/mount"
)

// Mount is a file system that moves with a service.
type Mount struct {
	Device    string   `yaml:"device" doc:"What to mount, such as /dev/vdb, or SERVER:/PATH for NFS."`
	Directory string   `yaml:"directory" doc:"Where, an absolute path without symbolic links. It has to exist."`
	Type      string   `yaml:"type" doc:"The type of the file system, such as ext4, xfs or nfs4."`
	Options   []string `yaml:"options,flow,omitempty" doc:"Options, as those of mount(8)."`
}

var mountType = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func (m Mount) check(p place) {
	path := m.Directory
	for _, one := range []struct {
		key, value, what string
		fine             bool
	}{
		{"device", m.Device, "what can be mounted, such as /dev/vdb, /dev/disk/by-uuid/... or SERVER:/PATH",
			strings.Contains(m.Device, "/") || !strings.ContainsAny(m.Device, "=")},
		{"directory", path, "the absolute path of a directory, such as /srv/db",
			filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/"},
		{"type", m.Type, "the type of a file system, such as ext4, xfs or nfs4", mountType.MatchString(m.Type)},
	} {
		at := p.key(one.key).and(p)
		if one.value == "" {
			at.fault("has no %s: write %s", one.key, one.what)
		} else if !one.fine || one.value[0] == '-' || strings.ContainsRune(one.value, 0) {
			at.fault("%s is not %s", quoted(one.value), one.what)
		}
	}
}

// mountWithin is how long a mount or unmount may take: a journal is replayed, or what is not written yet is written.
const mountWithin = time.Minute

func (m Mount) mount() mount.Mount {
	return mount.Mount{Device: m.Device, Directory: m.Directory, Type: m.Type, Options: strings.Join(m.Options, ",")}
}

// mountMembers are looked at on standbys if they are the first: what others need may be there only once those before them have started.
func (process Process) mountMembers(self string, first bool) []Process {
	m := process.Mount.mount()
	command := func(word string) Command {
		return Command{self, "mount", word, "--device", m.Device, "--type", m.Type, "--options", m.Options, m.Directory}
	}
	effect := process.does(command("up"), command("down"), nil, cmp.Or(process.Ready.Timeout, mountWithin),
		cmp.Or(process.UndoTimeout, mountWithin))
	if first {
		effect.Probe = command("probe")
	}
	return []Process{effect, member(process.Name+"-watch", command("watch"), Ready{Notify: true, Timeout: setWithin})}
}

// checkMounts refuses mounts where a service (held) has PID namespaces, as then all have.
func (w written) checkMounts(p place, held string) {
	for i, process := range w.Processes {
		if process.Mount != nil && held != "" {
			p.key("processes").item(i).key("mount").fault(
				"%s is pidns, which hides mounts from the host and from other programs: write contain: cgroup", held)
		}
	}
}
