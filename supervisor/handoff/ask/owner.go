package ask

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// owner is the user that a process is of.
type owner struct{ uids, gids, groups []uint32 }

// whose reads /proc/PID/status, where no process can write. The owner of files in /proc does not tell: it is root for a process
// that is not dumpable.
func whose(pid int) (o owner, err error) {
	text, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return o, err
	}
	for line := range bytes.Lines(text) {
		key, rest, _ := strings.Cut(string(line), ":")
		switch key {
		case "Uid":
			o.uids, err = numbers(rest)
		case "Gid":
			o.gids, err = numbers(rest)
		case "Groups":
			o.groups, err = numbers(rest)
		}
		if err != nil {
			return o, fmt.Errorf("process %d: %w", pid, err)
		}
	}
	if len(o.uids) != 4 || len(o.gids) != 4 {
		return o, fmt.Errorf("process %d has no owner", pid)
	}
	return o, nil
}

func numbers(text string) (all []uint32, err error) {
	for _, word := range strings.Fields(text) {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil, err
		}
		all = append(all, uint32(n))
	}
	return all, nil
}

// all tells whether all ids of a process are a user's: a stranger may have started it from a set-uid file.
func (o owner) all(uid uint32) bool {
	for _, is := range o.uids {
		if is != uid {
			return false
		}
	}
	return true
}

// credential makes a command act as that user; nil: ours does.
func (o owner) credential() *syscall.Credential {
	if me := uint32(os.Geteuid()); me != 0 || o.all(me) {
		return nil
	}
	return &syscall.Credential{Uid: o.uids[0], Gid: o.gids[0], Groups: o.groups}
}

// isOurs tells whether a process is of our own user, and of our own PID namespace: root in a container may be a stranger.
func isOurs(pid int) bool {
	o, err := whose(pid)
	if err != nil || !o.all(uint32(os.Geteuid())) {
		return false
	}
	here, err := os.Readlink("/proc/self/ns/pid")
	there, bad := os.Readlink(procFile(pid, "ns/pid"))
	return err == nil && bad == nil && here == there
}
