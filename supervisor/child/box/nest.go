package box

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// nest walks through a cgroup and those that programs made inside it, however deep and many, in steps of bounded
// work. It holds one cgroup open at a time, and remembers a number for each above it.
type nest struct {
	top    int               // the cgroup that it walks through
	clear  bool              // remove the cgroups inside it, innermost first; else: kill the processes in it
	inside func(string) bool // whether a process is in it, by its /proc/<pid>/cgroup

	mu   sync.Mutex // guards the fields below; held for a step
	dir  int        // the present cgroup; -1: none, and the next step begins at the top
	list int        // the processes of that one; -1: they are done
	tids bool       // they are threads
	pid  int        // the number that was read so far
	up   []int64    // positions in the cgroups above: at the visited one
	buf  [1024]byte
}

const nestSteps = 64 // in one turn: at some 10 µs each, a guardian's other duties do not wait

// ErrMore says that the work of a turn is done, and there is more.
var ErrMore = errors.New("there are more cgroups in it than one step removes")

// turn does some of the work, and reports whether that was the last.
func (n *nest) turn() (done bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for range nestSteps {
		done, err := n.step()
		if err != nil && len(errs) < 4 {
			errs = append(errs, err)
		}
		if done {
			n.leave()
			return true, errors.Join(errs...)
		}
	}
	return false, errors.Join(errs...)
}

func (n *nest) step() (done bool, err error) {
	switch {
	case n.dir < 0:
		fd, err := unix.Openat(n.top, ".", dirFlags, 0)
		if err != nil {
			return true, ignoring(err, unix.ENOENT, unix.ENODEV)
		}
		return false, n.enter(fd)
	case n.list >= 0:
		return false, n.strike()
	}
	name, next, _, err := n.entry()
	switch {
	case name == "" && len(n.up) == 0:
		return true, err
	case name == "":
		return false, errors.Join(err, n.ascend())
	case n.clear && unix.Unlinkat(n.dir, name, unix.AT_REMOVEDIR) == nil: // the number of the next one stays the same
		return false, n.seek(next)
	}
	at, err := unix.Seek(n.dir, 0, unix.SEEK_CUR)
	if err != nil {
		return true, err
	}
	fd, err := openBelow(n.dir, name, dirFlags, 0o700)
	if err != nil {
		return false, errors.Join(ignoring(err, unix.ENOENT, unix.ENODEV), n.seek(next))
	}
	_ = unix.Close(n.dir)
	n.up = append(n.up, at)
	return false, n.enter(fd)
}

// enter makes a cgroup the present one.
func (n *nest) enter(fd int) (err error) {
	n.dir, n.pid, n.tids = fd, 0, false
	allow(fd)
	if n.clear {
		return nil
	}
	n.list, err = openBelow(fd, "cgroup.procs", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		n.list = -1
	}
	return ignoring(err, unix.ENOENT, unix.ENODEV)
}

// ascend goes back to the cgroup above, after the one that it comes from, which it removes if it should.
func (n *nest) ascend() error {
	var own unix.Stat_t
	err := unix.Fstat(n.dir, &own)
	var up int
	if err == nil {
		up, err = unix.Openat(n.dir, "..", dirFlags, 0)
	}
	if err != nil {
		n.leave() // begin again
		return ignoring(err, unix.ENOENT, unix.ENODEV)
	}
	_ = unix.Close(n.dir)
	n.dir = up
	last := len(n.up) - 1
	at := n.up[last]
	n.up = n.up[:last]
	if err := n.seek(at); err != nil {
		return err
	}
	name, next, inode, err := n.entry()
	if err != nil || name == "" || inode != own.Ino {
		return err // it is gone, and the entry at its position must still be visited
	}
	if n.clear {
		err = ignoring(unix.Unlinkat(n.dir, name, unix.AT_REMOVEDIR), unix.ENOENT, unix.EBUSY)
	}
	return errors.Join(err, n.seek(next))
}

// entry looks at the next cgroup below, without going on; "": there is none.
func (n *nest) entry() (name string, next int64, inode uint64, err error) {
	for {
		at, err := unix.Seek(n.dir, 0, unix.SEEK_CUR)
		if err != nil {
			return "", 0, 0, err
		}
		size, err := unix.Getdents(n.dir, n.buf[:])
		if err != nil || size <= 0 {
			return "", 0, 0, ignoring(err, unix.ENOENT, unix.ENODEV)
		}
		for rest := n.buf[:size]; len(rest) >= direntName; {
			length := int(binary.NativeEndian.Uint16(rest[16:]))
			name, _, _ := bytes.Cut(rest[direntName:length], []byte{0})
			next = int64(binary.NativeEndian.Uint64(rest[8:]))
			if rest[18] == unix.DT_DIR && string(name) != "." && string(name) != ".." {
				return string(name), next, binary.NativeEndian.Uint64(rest), n.seek(at)
			}
			at, rest = next, rest[length:]
		}
	}
}

const direntName = 19 // where the name begins: struct linux_dirent64

func (n *nest) seek(at int64) error {
	_, err := unix.Seek(n.dir, at, unix.SEEK_SET)
	return err
}

// strike kills the next processes of the present cgroup. It reads them in pieces; a number may end in the next piece.
func (n *nest) strike() error {
	size, err := unix.Read(n.list, n.buf[:24])
	if errors.Is(err, unix.EOPNOTSUPP) && !n.tids { // a threaded cgroup: its processes are listed with another one
		_ = unix.Close(n.list)
		n.tids = true
		n.list, err = openBelow(n.dir, "cgroup.threads", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		if err == nil {
			return nil
		}
		n.list = -1
	}
	if err != nil || size <= 0 {
		if n.list >= 0 {
			_ = unix.Close(n.list)
		}
		n.list = -1
		return ignoring(err, unix.ENOENT, unix.ENODEV)
	}
	var errs []error
	for _, c := range n.buf[:size] {
		if c != '\n' {
			n.pid = n.pid*10 + int(c-'0')
			continue
		}
		errs = append(errs, n.kill(n.pid))
		n.pid = 0
	}
	return errors.Join(errs...)
}

// kill ends a listed process, if it is still in there when we hold it. Its main thread may have ended; the kernel's kill of a
// cgroup leaves such a process alone.
func (n *nest) kill(pid int) error {
	if pid <= 1 {
		return nil // 0: a process of a PID namespace that is not below ours
	}
	proc := "/proc/" + strconv.Itoa(pid)
	leader := pid
	if n.tids {
		status, err := os.ReadFile(proc + "/status")
		if err != nil {
			return ignoring(err, unix.ENOENT, unix.ESRCH)
		}
		_, rest, _ := strings.Cut(string(status), "\nTgid:")
		line, _, _ := strings.Cut(rest, "\n")
		leader, err = strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return fmt.Errorf("process of thread %d: %w", pid, err)
		}
	}
	fd, err := unix.PidfdOpen(leader, 0)
	if err != nil {
		return ignoring(err, unix.ESRCH, unix.EINVAL, unix.ENOENT)
	}
	defer unix.Close(fd)
	cgroups, err := os.ReadFile(proc + "/cgroup")
	if err != nil || !n.inside(string(cgroups)) {
		return ignoring(err, unix.ENOENT, unix.ESRCH)
	}
	return ignoring(unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0), unix.ESRCH)
}

// leave closes the present cgroup.
func (n *nest) leave() {
	for _, fd := range []*int{&n.dir, &n.list} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
		}
		*fd = -1
	}
	n.up = n.up[:0]
}

func (n *nest) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leave()
}

// ignoring drops an error that says that the object is gone.
func ignoring(err error, gone ...error) error {
	for _, is := range gone {
		if errors.Is(err, is) {
			return nil
		}
	}
	return err
}
