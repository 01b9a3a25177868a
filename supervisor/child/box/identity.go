package box

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const ( // the kernel's fixed numbers for the namespaces it boots with
	initialPidNS  = 4026531836
	initialUserNS = 4026531837
)

// TreeID is the written identity of a tree, by which a later process on the same machine can find out whether it is dead.
type TreeID struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Boot      string `json:"boot"`            // the boot id it was made in
	PidNS     uint64 `json:"pidns"`           // the PID namespace of its supervisor
	Pid       int    `json:"pid"`             // its supervisor
	StartTime uint64 `json:"starttime"`       // of the supervisor: guards against a reused pid
	Path      string `json:"path,omitempty"`  // cgroup: the tree's
	Inode     uint64 `json:"inode,omitempty"` // cgroup: of its parent
	Mark      string `json:"mark,omitempty"`  // pidns, walk: the command name of its stubs

	// Whose its stubs are, in which user namespace.
	User   uint32 `json:"user,omitempty"`
	UserNS uint64 `json:"userns,omitempty"`
}

// Host says where this process runs. Machine is empty if it proves nothing: containers of one image share a machine id.
type Host struct {
	Machine string `json:"machine"`
	Boot    string `json:"boot"`
	PidNS   uint64 `json:"pidns"`
}

// Identity reads the identity of this host.
func Identity() (Host, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Host{}, fmt.Errorf("boot id: %w", err)
	}
	ns, err := InodeOf("/proc/self/ns/pid")
	if err != nil {
		return Host{}, fmt.Errorf("pid namespace: %w", err)
	}
	h := Host{Boot: strings.TrimSpace(string(boot)), PidNS: ns}
	if ns == initialPidNS {
		if id, err := os.ReadFile("/etc/machine-id"); err == nil {
			h.Machine = strings.TrimSpace(string(id))
		}
	}
	return h, nil
}

// UserNS is the user namespace of this process: users mean the same to all in it.
func UserNS() (uint64, error) {
	ns, err := InodeOf("/proc/self/ns/user")
	if errors.Is(err, fs.ErrNotExist) { // the kernel has no others
		return initialUserNS, nil
	}
	return ns, err
}

// NewID gathers the identity of a tree that this process makes. Its cgroup is nil if it is contained otherwise.
func (c Container) NewID(name string, cgroup *TreeCgroup) (TreeID, error) {
	host, err := Identity()
	if err != nil {
		return TreeID{}, err
	}
	own, err := StatOf(os.Getpid())
	if err != nil {
		return TreeID{}, err
	}
	id := TreeID{
		Kind: c.Kind, Name: name, Boot: host.Boot, PidNS: host.PidNS,
		Pid: own.Pid, StartTime: own.Start,
	}
	if cgroup == nil {
		var random [5]byte
		_, _ = rand.Read(random[:])
		id.Mark = StubMark + hex.EncodeToString(random[:])
		id.User = uint32(os.Getuid())
		id.UserNS, err = UserNS()
		return id, err
	}
	id.Path = cgroup.Path
	id.Inode, err = InodeOf(filepath.Dir(cgroup.Path))
	return id, err
}

// ErrElsewhere says that this process cannot know anything about the tree.
var ErrElsewhere = errors.New("the tree belongs to another boot, container or cgroup namespace")

// ProveDead finds out whether a tree of any supervisor is dead. (false, nil) says that it was seen alive; an error, that its
// state is unknown. A tree out of sight never counts as dead.
func ProveDead(id TreeID) (bool, error) {
	if err := id.here(); err != nil {
		return false, err
	}
	if id.Kind == KindCgroup {
		l, err := id.OpenTreeCgroup()
		if err != nil || l == nil {
			return err == nil, err
		}
		defer l.Close()
		dead, err := l.Dead()
		if err != nil || !dead {
			return false, err
		}
		if l.Removed() {
			return true, nil
		}
		// A supervisor that thaws can still fork into an empty cgroup.
		if alive, err := id.supervised(); alive || err != nil {
			return false, errors.Join(fmt.Errorf("%w: its supervisor may still fork", ErrUnproved), err)
		}
		return true, nil
	}
	stubs, err := id.Stubs()
	if err != nil || len(stubs) > 0 {
		return false, err
	}
	return id.noStub()
}

// KillByID kills a tree of any supervisor. nil says that its death is proved, and that no fork can come late.
func KillByID(ctx context.Context, id TreeID) error {
	if err := id.here(); err != nil {
		return err
	}
	if id.Kind == KindCgroup {
		l, err := id.OpenTreeCgroup()
		if err != nil || l == nil {
			return err
		}
		defer l.Close()
		return KillUntilDead(ctx, l, true)
	}
	found, err := id.Stubs()
	if err != nil {
		return err
	}
	return id.killStubs(ctx, found)
}

// here reports whether pids and cgroups of the id mean the same to this process.
func (id TreeID) here() error {
	host, err := Identity()
	if err != nil {
		return err
	}
	if id.Boot == "" || id.Boot != host.Boot || id.PidNS == 0 || id.PidNS != host.PidNS {
		return ErrElsewhere
	}
	switch id.Kind {
	case KindCgroup, KindPidNS, KindWalk:
		return nil
	}
	return fmt.Errorf("%w: unknown kind %q", ErrElsewhere, id.Kind)
}

// supervised reports whether the supervisor that made the tree still exists.
func (id TreeID) supervised() (bool, error) {
	s, err := StatOf(id.Pid)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return s.Start == id.StartTime && s.Alive(), nil
}

// named reports whether the path is one that the supervisor of the id makes. An id comes from ZooKeeper, and somebody who can write
// there must not be able to have any other cgroup killed.
func (id TreeID) named() bool {
	m := madeBy.FindStringSubmatch(filepath.Base(id.Path))
	return m != nil && filepath.Clean(id.Path) == id.Path &&
		fmt.Sprintf("p%s-%s-%s", m[1], m[2], m[3]) == MakerName(id.PidNS, id.Pid, id.StartTime)
}

// OpenTreeCgroup opens the tree's cgroup; nil without an error says that it was removed, for which it had to be empty.
func (id TreeID) OpenTreeCgroup() (*TreeCgroup, error) {
	if !id.named() {
		return nil, fmt.Errorf("%w: %q is not a cgroup that its supervisor made", ErrElsewhere, id.Path)
	}
	base, inode, err := OpenBase(id.Path)
	if err != nil {
		return nil, errors.Join(ErrElsewhere, err)
	}
	defer unix.Close(base)
	if inode != id.Inode || id.Inode == 0 {
		return nil, ErrElsewhere // we may be looking at another cgroup tree
	}
	l, err := openTreeCgroupIn(base, id.Path)
	if err == nil {
		l.Finds = true
		return l, nil
	}
	var st unix.Stat_t
	if unix.Fstatat(base, filepath.Base(id.Path), &st, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
		return nil, nil // base is the right one: it cannot have become another since
	}
	return nil, err
}
