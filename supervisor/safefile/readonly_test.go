package safefile

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"understudy/packaging/need"
)

// readOnly mounts a folder over itself, so that nobody can write there.
func (s scene) readOnly(name string) {
	at := s.at(name)
	need.These(s, "namespaces") // where they may be made, a folder may be mounted
	must(s, unix.Mount(at, at, "", unix.MS_BIND, ""))
	s.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	must(s, unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
}

// In a container the config and the environment come from outside: as Kubernetes' ConfigMap, whose directory has the mode 0777 and whose
// files are links, or from a checkout of a user of the host.
func TestWhatIsMountedReadOnlyIsTakenFromWhoeverOwnsIt(t *testing.T) {
	s := newScene(t)
	s.folder("map", 0, 0o777)
	s.folder("map/..2026", 0, 0o755)
	s.file("map/..2026/env", 0, 0o644, "A=b")
	s.link("map/..data", "..2026", 0)
	s.link("map/env", "..data/env", 0)
	s.folder("checkout", stranger, 0o775)
	s.file("checkout/u.yaml", stranger, 0o664, "")
	s.link("checkout/link.yaml", "u.yaml", stranger)
	config := []string{"checkout/u.yaml", "checkout/link.yaml"}
	writer := Who{UID: service}
	for _, name := range config {
		if err := Own(s.at(name), Setting); err == nil || !strings.Contains(err.Error(), "checkout belongs to user 4712") {
			t.Errorf("%s, which its owner can write: %v", name, err)
		}
	}
	if f, err := Open(s.at("map/env"), writer); err == nil {
		t.Error("a link was followed that its directory lets everybody replace")
		_ = f.Close()
	}
	s.readOnly("map")
	s.readOnly("checkout")
	for _, name := range append(config, "map/env") {
		if err := Own(s.at(name), Setting); err != nil {
			t.Error(err)
		}
	}
	if err := Own(s.at("map/env"), Secret); err == nil || !strings.Contains(err.Error(), "chmod 600 "+s.at("map/..2026/env")) {
		t.Errorf("a secret that everybody in the container can read: %v", err)
	}
	if err := Own(s.at("checkout/u.yaml"), Secret); err == nil {
		t.Error("a secret that its owner can read")
	}
	s.link("sneaky", "checkout/u.yaml", stranger) // it can be replaced, whatever it leads to
	if err := Own(s.at("sneaky"), Setting); err == nil || !strings.Contains(err.Error(), "sneaky is a link of user 4712") {
		t.Error(err)
	}
	for _, who := range []Who{{}, writer} {
		f, err := Open(s.at("map/env"), who)
		if err != nil {
			t.Errorf("for user %d: %v", who.UID, err)
			continue
		}
		_ = f.Close()
	}
}
