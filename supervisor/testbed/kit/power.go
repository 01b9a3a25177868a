package kit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// PowerOn boots the host: what is started on it from now on has a new boot id, and can all be ended at one instant.
func (h *Host) PowerOn(tb testing.TB) {
	tb.Helper()
	h.Reboot(tb)
	base, err := ownGroup()
	if err == nil {
		// Never the same cgroup twice: the kernel may kill at birth what is forked into one that has been killed.
		h.group, err = os.MkdirTemp(base, fmt.Sprintf("%s.%s-boot%d-*", h.lab.name("m"), h.Name, h.booted))
	}
	if err == nil {
		err = os.Chmod(h.group, 0o755)
	}
	if err != nil {
		tb.Fatalf("power on %s: %v", h.Name, err)
	}
}

// PowerOff pulls the host's cable and ends, at one instant, all that runs on it. It returns when nothing is left.
func (h *Host) PowerOff(tb testing.TB) {
	tb.Helper()
	h.Cut(tb)
	if err := killGroup(h.group); err != nil {
		tb.Fatalf("power off %s: %v", h.Name, err)
	}
}

// Freeze stops everything on the host at one instant, or has it go on.
func (h *Host) Freeze(tb testing.TB, stop bool) {
	tb.Helper()
	state := map[bool]string{true: "1", false: "0"}[stop]
	err := os.WriteFile(filepath.Join(h.group, "cgroup.freeze"), []byte(state), 0)
	if err == nil && !Reached(10*time.Second, func() bool {
		events, err := os.ReadFile(filepath.Join(h.group, "cgroup.events"))
		return err == nil && bytes.Contains(events, []byte("frozen "+state))
	}) {
		err = errors.New("it does not get so")
	}
	if err != nil {
		tb.Fatalf("freeze %s: %v", h.Name, err)
	}
}

// killGroup ends everything in a cgroup and removes it with all that is inside.
func killGroup(dir string) error {
	var err error
	empty := Reached(10*time.Second, func() bool {
		// Again and again: what was just being started on the host may enter the cgroup after the first time.
		if err = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0); err != nil {
			return true
		}
		events, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		return err == nil && bytes.Contains(events, []byte("populated 0"))
	})
	if err != nil {
		return err
	}
	if !empty {
		return errors.New("something does not die in " + dir)
	}
	return removeGroup(dir)
}

func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeGroup(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(dir)
}

// sweepGroups ends and removes the cgroups of all hosts of the lab's slot.
func (l *Lab) sweepGroups() error {
	base, err := ownGroup()
	if err != nil {
		return nil //nolint:nilerr // without cgroups no host was powered on
	}
	groups, err := filepath.Glob(filepath.Join(base, l.name("m")+".*"))
	if err != nil {
		return err
	}
	for _, dir := range groups {
		if err := killGroup(dir); err != nil {
			return err
		}
	}
	return nil
}

// ownGroup is the folder of the cgroup v2 that this process is in.
func ownGroup() (string, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); len(words) > 2 && words[2] == "cgroup2" {
			for line := range strings.Lines(string(own)) {
				if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
					return filepath.Join(words[1], path), nil
				}
			}
		}
	}
	return "", errors.New("no cgroup v2 is mounted")
}
