// Package mount mounts a file system that moves with a service, and unmounts it. The truth is the kernel's table of mounts, and never a
// file in the file system, which may not answer.
//
// # Promised
//
//   - Up mounts over nothing else, and nothing that this host has mounted elsewhere.
//   - Down succeeds only if the file system is in the table no more, and no other mount of this host holds its block device.
//
// # Not promised
//
//   - That no other host has it mounted. The lock decides, and the undo that it waits for.
package mount

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Mount is a file system, and where it is mounted.
type Mount struct {
	Device, Directory, Type string
	Options                 string // with commas, as for mount(8)
}

// flags are the options that the kernel does not leave to a file system: what to set, and what to clear.
var flags = map[string][2]uintptr{
	"defaults": {}, "ro": {unix.MS_RDONLY}, "rw": {0, unix.MS_RDONLY}, "nosuid": {unix.MS_NOSUID}, "suid": {0, unix.MS_NOSUID},
	"nodev": {unix.MS_NODEV}, "dev": {0, unix.MS_NODEV}, "noexec": {unix.MS_NOEXEC}, "exec": {0, unix.MS_NOEXEC},
	"sync": {unix.MS_SYNCHRONOUS}, "async": {0, unix.MS_SYNCHRONOUS}, "dirsync": {unix.MS_DIRSYNC}, "lazytime": {unix.MS_LAZYTIME},
	"noatime": {unix.MS_NOATIME}, "atime": {0, unix.MS_NOATIME}, "nodiratime": {unix.MS_NODIRATIME}, "relatime": {unix.MS_RELATIME},
	"strictatime": {unix.MS_STRICTATIME},
}

// Fit is why this host could not mount it now; nil: nothing is known to be in the way.
func (m Mount) Fit() error {
	here, others, err := m.look()
	if err == nil && len(here) == 0 && len(others) > 0 {
		err = fmt.Errorf("%s is mounted on %s", others[0].source, m.Directory)
	}
	if err != nil || len(here) > 0 {
		return err
	}
	real, err := filepath.EvalSymlinks(m.Directory) // the table has no symbolic links
	if err == nil && real != m.Directory {
		err = fmt.Errorf("%s leads to %s: write that", m.Directory, real)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no directory %s: create it", m.Directory)
	}
	if err != nil || !m.local() {
		return err
	}
	info, err := os.Stat(m.Device)
	if err == nil && info.Mode()&os.ModeCharDevice != 0 {
		err = fmt.Errorf("%s is no block device", m.Device)
	}
	return err
}

// local reports whether the device is a path, and no server's.
func (m Mount) local() bool { return filepath.IsAbs(m.Device) && !strings.HasPrefix(m.Device, "//") }

// Up mounts it. What is left of an earlier mount is unmounted first. nothing: it has failed, and has done nothing.
func (m Mount) Up(ctx context.Context) (nothing bool, err error) {
	if err := m.Down(); err != nil {
		return false, err
	}
	if err := m.Fit(); err != nil {
		return true, err
	}
	if err := m.mount(ctx); err != nil {
		return false, fmt.Errorf("mount %s on %s as %s: %w (dmesg may give more)", m.Device, m.Directory, m.Type, err)
	}
	here, others, err := m.look()
	if err == nil && (len(here) != 1 || len(others) > 0) {
		err = fmt.Errorf("%s was mounted, and the table of mounts has something else on %s", m.Device, m.Directory)
	}
	return false, err
}

// mount leaves it to the helper of its type, if there is one, as mount(8) does: only that can ask an NFS server.
func (m Mount) mount(ctx context.Context) error {
	helper := "/sbin/mount." + m.Type
	if _, err := os.Stat(helper); err == nil {
		cmd := exec.CommandContext(ctx, helper, m.Device, m.Directory)
		if m.Options != "" {
			cmd.Args = append(cmd.Args, "-o", m.Options)
		}
		said, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", helper, err, bytes.TrimSpace(said))
		}
		return nil
	}
	var set uintptr
	var rest []string
	for _, option := range strings.Split(m.Options, ",") {
		if change, ok := flags[option]; ok {
			set = set&^change[1] | change[0]
		} else if option != "" {
			rest = append(rest, option)
		}
	}
	return unix.Mount(m.Device, m.Directory, m.Type, set, strings.Join(rest, ","))
}

// Down unmounts it; nil: it is not mounted.
func (m Mount) Down() error {
	for {
		here, others, err := m.look()
		switch {
		case err != nil:
			return err
		case len(here) == 0:
			return m.free()
		case len(others) > 0:
			return fmt.Errorf("%s is mounted on %s too: unmount that", others[0].source, m.Directory)
		}
		err = unix.Unmount(m.Directory, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("%s is busy: %s", m.Directory, users(m.Directory))
		} else if err != nil {
			return fmt.Errorf("unmount %s: %w", m.Directory, err)
		}
	}
}

// gone says that there is no such device, or that it cannot be used, as that of a DRBD that is secondary.
var gone = []error{unix.ENOENT, unix.ENXIO, unix.ENODEV, unix.ENOMEDIUM, unix.EMEDIUMTYPE}

// free fails if this host may still write to the block device. P2: another directory or mount namespace may have it mounted, which our
// table does not say. But each mount claims the device, as O_EXCL does.
func (m Mount) free() error {
	if !m.local() {
		return nil
	}
	device, err := blockDevice(m.Device)
	if err == nil && device == "" {
		return nil
	}
	fd := -1
	if err == nil {
		fd, err = unix.Open(m.Device, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	}
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s is in use on this host%s", m.Device, elsewhere(device))
	case slices.ContainsFunc(gone, func(one error) bool { return errors.Is(err, one) }):
		return nil
	}
	return fmt.Errorf("not known whether %s is in use: %w", m.Device, err)
}
