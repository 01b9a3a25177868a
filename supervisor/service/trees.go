package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/host"
	"understudy/supervisor/wait"
)

// OwnTree is a process tree that this supervisor made, with a function that ends its candidacy or term.
type OwnTree struct {
	ID             json.RawMessage
	tree           host.Tree
	end            func(why error)
	pendingEffects func() []string // what its oneshots did, and is not undone

	mu          sync.Mutex
	promoteTree host.Tree // what promotes and demotes the copy in it; nil: there is none
}

// with has another tree end with it.
func (t *OwnTree) with(promoteTree host.Tree) {
	t.mu.Lock()
	t.promoteTree = promoteTree
	t.mu.Unlock()
}

func (t *OwnTree) endPromoteTree(ctx context.Context) error {
	t.mu.Lock()
	promoteTree := t.promoteTree
	t.mu.Unlock()
	if promoteTree == nil {
		return nil
	}
	return promoteTree.End(ctx)
}

// Kill ends the tree because another node holds the lock. nil: it is dead, and its effects are undone.
func (t *OwnTree) Kill(ctx context.Context, holder string, token int64) error {
	t.end(fmt.Errorf("%w: %s holds it, with token %d, and has asked for the program's death", election.ErrLost, holder, token))
	if err := errors.Join(t.endPromoteTree(ctx), t.tree.End(ctx)); err != nil {
		return err
	}
	// An address, a mount: the node that starts next must find them gone.
	for left := t.pendingEffects(); len(left) > 0; left = t.pendingEffects() {
		if !wait.For(ctx, 5*time.Millisecond) {
			return &fencing.NotUndone{Names: left}
		}
	}
	return nil
}

// trees are the newest trees of a service. It keeps those that have ended for a while: with some kinds of containment, only the
// supervisor that made a tree can prove that it is dead. All its methods are safe.
type trees struct {
	service string
	killNow func(context.Context, host.Tree) // ends a tree at once

	mu  sync.Mutex // guards all
	all []*OwnTree
}

const treesKept = 16

func (m *trees) newest() *OwnTree {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) == 0 {
		return nil
	}
	return m.all[len(m.all)-1]
}

func (m *trees) add(one *OwnTree) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(was *OwnTree) bool { return bytes.Equal(was.ID, one.ID) }) // a copy's, which outlasts candidacies
	if len(m.all) >= treesKept {
		m.all = m.all[1:]
	}
	m.all = append(m.all, one)
}

// find finds the newest: after a failed upgrade, a tree goes on in another stay.
func (m *trees) find(id json.RawMessage) *OwnTree {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range slices.Backward(m.all) {
		if bytes.Equal(one.ID, id) {
			return one
		}
	}
	return nil
}

// Name implements failsafe.Term, as the methods below do.
func (m *trees) Name() string { return m.service }

// End asks for the end of the newest tree's candidacy or term, and returns at once.
func (m *trees) End(why error) {
	if one := m.newest(); one != nil {
		one.end(why)
	}
}

// Killer returns a function that kills the present tree, or nil if there is none.
func (m *trees) Killer() func(context.Context) {
	one := m.newest()
	if one == nil {
		return nil
	}
	return func(ctx context.Context) { m.killNow(ctx, one.tree) }
}

// idOf is a tree's identity, as in a breadcrumb.
func idOf(tree host.Tree) json.RawMessage {
	id, err := tree.ID()
	if err != nil {
		return nil
	}
	return id
}

// unprovedTree is a tree that was left without a proof of its death, and the lease that it belongs to.
type unprovedTree struct {
	tree        host.Tree // nil: there is none
	promoteTree host.Tree // as a term's
	epoch       uint64
	seen        string // the live processes, in words; also of a tree that is not ours
}

func (u *unprovedTree) end(ctx context.Context) error {
	err := u.tree.End(ctx)
	if u.promoteTree != nil {
		err = errors.Join(err, u.promoteTree.End(ctx))
	}
	return err
}
