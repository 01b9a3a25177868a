package box

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/guard"
)

// TreeCgroup is a cgroup v2 that holds one tree, in a RunCgroup for each run. All files that a kill needs are
// open beforehand.
type TreeCgroup struct {
	Path    string
	Dir     int          // itself: whatever is in it is opened from here
	killer  int          // cgroup.kill
	events  int          // cgroup.events
	freezer int          // cgroup.freeze
	looks   atomic.Int32 // how many there were while it was alive
	single  bool         // it is a run
	gone    bool         // it was removed before we could open it
	Finds   bool         // this process does not hold the first processes of its runs, and finds them by the cgroups' names
	members nest         // to kill them one by one
	inner   nest         // to remove those inside it
}

// RunCgroup is the cgroup inside a tree's that one program is forked into, so that it can be killed by itself. It is never used
// twice: Linux 6.14 and later kill at birth every process that is forked into a once killed cgroup (they compare its
// count of kills with that of the parent process's cgroup).
type RunCgroup struct{ *TreeCgroup }

// MakeTreeCgroup creates a cgroup with a name never used before, so that nobody mistakes a removed one for it. The name says
// which process made it, for sweep, and its tag which service it belongs to.
func MakeTreeCgroup(base, name, tag string) (*TreeCgroup, error) {
	var random [6]byte
	_, _ = rand.Read(random[:])
	by, err := maker()
	if err != nil {
		return nil, err
	}
	if tag != "" {
		by = "s" + tag + "." + by
	}
	path := filepath.Join(base, sanitise(name)+"."+by+"."+hex.EncodeToString(random[:]))
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	l, err := OpenTreeCgroup(path, 0)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return l, nil
}

// GoneTreeCgroup represents a removed one, which was empty: others cannot be removed.
func GoneTreeCgroup(path string) *TreeCgroup {
	l := closedTreeCgroup(path)
	l.gone = true
	return l
}

// Vanished reports whether the cgroup at a path was removed, for which it had to be empty. A cgroup that is only hidden does not count.
func Vanished(path string) bool {
	var at unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &at); err != nil || at.Type != unix.CGROUP2_SUPER_MAGIC {
		return false
	}
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Order implements Box.
func (l *TreeCgroup) Order() error {
	if l.Removed() {
		return nil
	}
	return killing.Do(func() error {
		if _, err := unix.Write(l.killer, []byte("1")); err != nil && err != unix.ENODEV {
			return fmt.Errorf("kill cgroup %s: %w", l.Path, err)
		}
		return nil
	})
}

// KillNow implements Box.
func (l *TreeCgroup) KillNow() error {
	err := l.Order()
	if l.Finds && !l.Removed() {
		err = errors.Join(err, l.firsts((*First).Order))
	}
	return err
}

// KillHarder kills its members one by one, if the kernel's order for all was not enough: that leaves out a process whose main thread has
// ended, and the kernel refuses it in a cgroup that the program has made threaded.
func (l *TreeCgroup) KillHarder() error {
	if l.looks.Load() < 3 || l.Removed() {
		return nil
	}
	l.regain()
	if _, err := l.members.turn(); err != nil {
		return fmt.Errorf("kill the members of cgroup %s: %w", l.Path, err)
	}
	return nil
}

// Holds reports whether a /proc/<pid>/cgroup belongs to a member. The last name of a tree's path, and the last two of a run's, belong
// to no other cgroup.
func (l *TreeCgroup) Holds(cgroups string) bool {
	if l.single {
		return InRun(cgroups, []string{l.Path})
	}
	return below(cgroups, "/"+filepath.Base(l.Path)+"/")
}

// Seal freezes it: a process forked into it later runs no instruction before it is killed or the cgroup is removed; processes stuck in
// the kernel can delay that. Frozen processes can be killed. Seal is only a help, and repeated: no death waits for it.
func (l *TreeCgroup) Seal() {
	select {
	case freezing <- struct{}{}:
		_, _ = unix.Write(l.freezer, []byte("1"))
		<-freezing
	default:
	}
}

// Dead reads the kernel's word that no process is left. If this process does not hold the first processes of its runs, which may be
// elsewhere, it also checks their pidfds. Processes that the kernel does not count any more have given back memory and descriptors.
func (l *TreeCgroup) Dead() (bool, error) {
	if l.gone {
		return true, nil
	}
	var buf [256]byte
	n, err := unix.Pread(l.events, buf[:], 0)
	if err == unix.ENODEV {
		return true, nil // removed, which the kernel allows only when it is empty
	}
	if err != nil {
		return false, fmt.Errorf("read events of cgroup %s: %w", l.Path, err)
	}
	for line := range bytes.Lines(buf[:n]) {
		if bytes.Equal(bytes.TrimSpace(line), []byte("populated 0")) {
			if l.Finds {
				if dead, err := l.firstsDead(); !dead {
					l.looks.Add(1)
					return false, err
				}
			}
			l.looks.Store(0)
			return true, nil
		}
	}
	l.looks.Add(1)
	return false, nil
}

// Removed reports whether the cgroup is gone, for which it had to be empty.
func (l *TreeCgroup) Removed() bool {
	if l.gone {
		return true
	}
	var buf [1]byte
	_, err := unix.Pread(l.events, buf[:], 0)
	return err == unix.ENODEV
}

// takeAway removes its cgroup, and as many of those that the program made inside it as fit into one step.
func (l *TreeCgroup) takeAway() error {
	l.regain()
	if err := l.rmdir(); !errors.Is(err, unix.EBUSY) {
		return err
	}
	done, err := l.inner.turn()
	if !done {
		return errors.Join(ErrMore, err)
	}
	return errors.Join(err, ignoring(l.rmdir(), unix.ENOENT))
}

// Remove implements Box.
func (l *TreeCgroup) Remove() error {
	if l.Removed() {
		return nil
	}
	err := Making.Do(l.takeAway)
	if errors.Is(err, ErrMore) {
		return err
	}
	if l.Removed() {
		return nil
	}
	// P2: a missing path proves nothing as long as the kernel still has the cgroup.
	return fmt.Errorf("remove cgroup %s: %w", l.Path, errors.Join(ErrUnproved, err))
}

// Wake does not rely on the event alone: the kernel holds back all but the first within 10 ms.
func (l *TreeCgroup) Wake() (int, int16, time.Duration) {
	if l.Removed() {
		return -1, 0, 20 * time.Millisecond // it would be readable for ever
	}
	return l.events, unix.POLLPRI, min(500*time.Microsecond<<min(l.looks.Load(), 6), 20*time.Millisecond)
}

// NewRun makes the cgroup for one program.
func (l *TreeCgroup) NewRun(number int) (*RunCgroup, error) {
	name := RunPrefix + strconv.Itoa(number)
	err := unix.Mkdirat(l.Dir, name, 0o755)
	if err == nil {
		var r *RunCgroup
		r, err = openRun(l.Dir, filepath.Join(l.Path, name))
		if err == nil {
			return r, nil
		}
		_ = unix.Unlinkat(l.Dir, name, unix.AT_REMOVEDIR)
	}
	if l.Removed() {
		err = errors.Join(guard.ErrLeaseEnded, err)
	}
	return nil, fmt.Errorf("make cgroup: %w", err)
}

// AdoptRun opens the run of a start that a previous image has made.
func (l *TreeCgroup) AdoptRun(path string) (*RunCgroup, error) {
	r, err := openRun(l.Dir, path)
	if err == nil {
		return r, nil
	}
	if _, gone := os.Lstat(path); l.Removed() || errors.Is(gone, fs.ErrNotExist) {
		return &RunCgroup{GoneTreeCgroup(path)}, nil // its program did, as one may that has left it
	}
	return nil, err
}

func openRun(cgroup int, path string) (*RunCgroup, error) {
	l, err := openTreeCgroupIn(cgroup, path)
	if err != nil {
		return nil, err
	}
	l.single = true
	return &RunCgroup{l}, nil
}

// Close implements Box.
func (l *TreeCgroup) Close() {
	for _, fd := range []*int{&l.Dir, &l.killer, &l.events, &l.freezer} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
		}
		*fd = -1
	}
	l.members.close()
	l.inner.close()
}

const longestName = 120 // in a cgroup's: the kernel allows 255 bytes

// sanitise turns a name into a valid one for a cgroup.
func sanitise(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, name)
	clean = strings.TrimLeft(clean, ".")
	if len(clean) > longestName {
		clean = clean[:longestName]
	}
	if clean == "" {
		return "tree"
	}
	return clean
}

// rootBase is where trees are made by a process that is in the root.
const rootBase = "understudy"

// CgroupBase finds this process's own place in the cgroup v2 hierarchy; trees are made there.
func CgroupBase() (string, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("own cgroup: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("cgroup mounts: %w", err)
	}
	return baseFrom(string(own), string(mounts))
}

// baseFrom is CgroupBase for what /proc says of the cgroups and mounts.
func baseFrom(own, mounts string) (string, error) {
	path, found := "", false
	for line := range strings.Lines(own) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path, found = rest, true
		}
	}
	if !found {
		return "", errors.New("no cgroup v2 in /proc/self/cgroup")
	}
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/..") {
		return "", fmt.Errorf("own cgroup %q is outside the cgroup namespace", path)
	}
	path = strings.TrimSuffix(strings.TrimSuffix(path, " (deleted)"), "/"+lair)
	for line := range strings.Lines(mounts) {
		root, at, ok := cgroup2Mount(line)
		if !ok {
			continue
		}
		below, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
		if !ok || below != "" && !strings.HasPrefix(below, "/") {
			continue
		}
		if below == "" || below == "/" {
			return filepath.Join(at, rootBase), nil
		}
		return filepath.Join(at, below), nil
	}
	return "", errors.New("no cgroup v2 mount shows our own cgroup")
}

// cgroup2Mount reads the root and the place of a cgroup2 mount from a line of mountinfo.
func cgroup2Mount(line string) (root, at string, ok bool) {
	before, after, ok := strings.Cut(line, " - ")
	fields := strings.Fields(before)
	if !ok || len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
		return "", "", false
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	return unescape.Replace(fields[3]), unescape.Replace(fields[4]), true
}

// InodeOf is the inode number of a path.
func InodeOf(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino, nil
}
