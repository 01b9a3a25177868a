package child

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"understudy/supervisor/child/box"
)

// identify gathers the tree's identity.
func (t *Tree) identify(name string) (box.TreeID, error) {
	host, err := box.Identity()
	if err != nil {
		return box.TreeID{}, err
	}
	own, err := box.StatOf(os.Getpid())
	if err != nil {
		return box.TreeID{}, err
	}
	id := box.TreeID{
		Kind: t.guard.cfg.Container.Kind, Name: name, Boot: host.Boot, PidNS: host.PidNS,
		Pid: own.Pid, StartTime: own.Start,
	}
	if t.leaf == nil {
		var random [5]byte
		_, _ = rand.Read(random[:])
		id.Mark = box.StubMark + hex.EncodeToString(random[:])
		id.User = uint32(os.Getuid())
		id.UserNS, err = box.UserNS()
		return id, err
	}
	id.Path = t.leaf.Path
	id.Inode, err = box.InodeOf(filepath.Dir(t.leaf.Path))
	return id, err
}

// Maker is this process as the maker of its trees.
func (g *Guard) Maker() (box.Maker, error) {
	id, err := (&Tree{guard: g}).identify("")
	if err != nil {
		return box.Maker{}, err
	}
	id.Mark = ""
	m := box.Maker{TreeID: id}
	if m.Kind == box.KindCgroup {
		m.Path = g.cfg.Container.Base
		m.Inode, err = box.InodeOf(m.Path)
	}
	return m, err
}

// Unproved adds live processes of the tree to an unproved death, also those that have left its cgroup and removed that.
func (t *Tree) Unproved(err error) error {
	alive, ok := errors.AsType[*box.AliveError](box.Unproved(t.id, err))
	if !ok {
		return err
	}
	for _, one := range t.firsts() {
		if gone, err := one.Dead(); alive.Pid == 0 && !gone && err == nil {
			alive.Look(one.Pid)
		}
	}
	return alive
}

// Leftover ends the processes of a service that former supervisors have left on this machine, and those of the tree with that
// identity, if it is theirs. It returns a process that it could not prove dead before ctx ended; nil: none is left.
func (g *Guard) Leftover(ctx context.Context, service string, id box.TreeID) *box.Leftover {
	return g.leftovers.End(ctx, service, id)
}
