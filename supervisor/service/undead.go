package service

import (
	"errors"

	"understudy/supervisor/child"
	"understudy/supervisor/unit"
)

// undead is a tree that was left without a proof of its death, and the lease that it belongs to.
type undead struct {
	tree  unit.Tree // nil: there is none
	epoch uint64
	seen  string // the live processes, in words; also of a tree that is not ours
}

// keep remembers a tree that was left.
func (u *undead) keep(tree unit.Tree, epoch uint64) { u.tree, u.epoch = tree, epoch }

// of reports whether the tree belongs to a lease.
func (u *undead) of(epoch uint64) bool { return u.tree != nil && u.epoch == epoch }

// proved notes that the tree is dead.
func (u *undead) proved() { u.tree = nil }

// see notes live processes.
func (u *undead) see(err error) {
	u.seen = unprovedDeath(err)
	if l, ok := seen(err); ok {
		u.seen = unprovedDeath(errors.New(l.String()))
	}
}

// forget notes that no process is seen any more.
func (u *undead) forget() { u.seen = "" }

// any reports whether a process of the service may be alive.
func (u *undead) any() bool { return u.tree != nil || u.seen != "" }

// seen describes the processes of a tree that is not proved dead.
func seen(err error) (child.Leftover, bool) {
	if alive, ok := errors.AsType[*child.AliveError](err); ok {
		return alive.Leftover, true
	}
	return child.Leftover{}, false
}

// unprovedDeath says that a child may be alive although it should have ended.
func unprovedDeath(err error) string { return "not proved dead: " + err.Error() }
