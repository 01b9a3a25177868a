package zkmem

import (
	"fmt"
	"slices"

	"understudy/election/jute"
)

// Change is what watches look for.
type Change struct {
	Kind jute.EventType
	Path string
	acl  []jute.ACL // of the node that the event names
}

// txn makes changes under one zxid. Each step takes effect at once, so that the next one sees it; rollback undoes
// them all. Its changes are told to the watches only when it is through.
type txn struct {
	tree    *tree
	zxid    int64
	now     int64 // milliseconds since 1970
	steps   int   // how many there are; one alone need not be undone
	changes []Change
	undo    []func()
}

func (x *txn) rollback() {
	for _, undo := range slices.Backward(x.undo) {
		undo()
	}
	x.undo, x.changes = nil, nil
}

func failed(code jute.Code) jute.MultiResult { return jute.MultiResult{Op: jute.OpError, Code: code} }

// step does one change. A step that fails changes nothing.
func (x *txn) step(who Caller, op jute.MultiOp) jute.MultiResult {
	switch op.Op {
	case jute.OpCreate, jute.OpCreate2:
		return x.create(who, op)
	case jute.OpDelete:
		return x.delete(who, op.Target)
	case jute.OpSetData:
		return x.setData(who, op.Set)
	case jute.OpCheck:
		return x.check(who, op.Target)
	}
	return failed(jute.Unimplemented)
}

// multi does all steps or none, and answers as the real server does: see jute.MultiResult.
func (x *txn) multi(who Caller, ops jute.Multi) jute.MultiResponse {
	x.steps = len(ops)
	results := make(jute.MultiResponse, 0, len(ops))
	for i, op := range ops {
		if op.Op == jute.OpCreate2 {
			op.Op = jute.OpCreate // as which the real server answers it here
		}
		res := x.step(who, op)
		results = append(results, res)
		if res.Op != jute.OpError {
			continue
		}
		x.rollback()
		for j := range i {
			results[j] = failed(jute.OK)
		}
		for range ops[i+1:] {
			results = append(results, failed(jute.RuntimeInconsistency))
		}
		break
	}
	return results
}

// create checks in the order of the real server, which decides which of several faults a client hears of.
func (x *txn) create(who Caller, op jute.MultiOp) jute.MultiResult {
	req := op.Create
	parentPath, _, ok := parentOf(req.Path)
	if !ok || req.Flags < jute.FlagPersistent || req.Flags > jute.FlagEphemeralSequential {
		return failed(jute.BadArguments)
	}
	acl, code := resolveACL(req.ACL, who.ids)
	if code != jute.OK {
		return failed(code)
	}
	parent, ok := x.tree.lookup(parentPath)
	switch {
	case !ok:
		return failed(jute.NoNode)
	case !allowed(parent.acl, jute.PermCreate, who.ids):
		return failed(jute.NoAuth)
	}
	path := req.Path
	if req.Flags == jute.FlagSequence || req.Flags == jute.FlagEphemeralSequential {
		path = fmt.Sprintf("%s%010d", path, parent.stat.Cversion)
	}
	if !validPath(path) {
		return failed(jute.BadArguments)
	}
	if _, exists := x.tree.lookup(path); exists {
		return failed(jute.NodeExists)
	}
	if parent.ephemeral() {
		return failed(jute.NoChildrenForEphemerals)
	}
	n := &node{data: req.Data, acl: acl, stat: jute.Stat{
		Czxid: x.zxid, Mzxid: x.zxid, Pzxid: x.zxid, Ctime: x.now, Mtime: x.now,
	}}
	if req.Flags == jute.FlagEphemeral || req.Flags == jute.FlagEphemeralSequential {
		n.stat.EphemeralOwner = who.Session
	}
	x.insert(path, parentPath, parent, n)
	return jute.MultiResult{Op: op.Op, Path: path, Stat: n.status()}
}

func (x *txn) insert(path, parentPath string, parent *node, n *node) {
	_, name, _ := parentOf(path)
	before := parent.stat
	x.tree.insert(path, parentPath, name, n)
	parent.stat.Cversion++
	parent.stat.Pzxid = x.zxid
	x.undo = append(x.undo, func() {
		x.tree.remove(path, parentPath, name)
		parent.stat = before
	})
	x.changes = append(x.changes,
		Change{jute.EventNodeCreated, path, n.acl},
		Change{jute.EventNodeChildrenChanged, orRoot(parentPath), parent.acl})
}

func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

func (x *txn) delete(who Caller, req jute.PathVersion) jute.MultiResult {
	parentPath, _, ok := parentOf(req.Path)
	if !ok || special(req.Path) {
		return failed(jute.BadArguments)
	}
	parent, ok := x.tree.lookup(parentPath)
	switch {
	case !ok:
		return failed(jute.NoNode)
	case !allowed(parent.acl, jute.PermDelete, who.ids):
		return failed(jute.NoAuth)
	}
	n, ok := x.tree.lookup(req.Path)
	switch {
	case !ok:
		return failed(jute.NoNode)
	case req.Version != -1 && req.Version != n.stat.Version:
		return failed(jute.BadVersion)
	case len(n.children) > 0:
		return failed(jute.NotEmpty)
	}
	x.remove(req.Path)
	return jute.MultiResult{Op: jute.OpDelete}
}

// remove takes a node out that is known to be there.
func (x *txn) remove(path string) {
	parentPath, name, _ := parentOf(path)
	n, _ := x.tree.lookup(path)
	parent, _ := x.tree.lookup(parentPath)
	before := parent.stat
	x.tree.remove(path, parentPath, name)
	parent.stat.Pzxid = x.zxid
	x.undo = append(x.undo, func() {
		x.tree.insert(path, parentPath, name, n)
		parent.stat = before
	})
	x.changes = append(x.changes,
		Change{jute.EventNodeDeleted, path, n.acl},
		Change{jute.EventNodeChildrenChanged, orRoot(parentPath), parent.acl})
}

// find finds the node of a step, if the caller has the permission, and the version fits.
func (x *txn) find(who Caller, at jute.PathVersion, perm int32) (*node, jute.Code) {
	if !validPath(at.Path) {
		return nil, jute.BadArguments
	}
	n, ok := x.tree.lookup(at.Path)
	switch {
	case !ok:
		return nil, jute.NoNode
	case !allowed(n.acl, perm, who.ids):
		return nil, jute.NoAuth
	case at.Version != -1 && at.Version != n.stat.Version:
		return nil, jute.BadVersion
	}
	return n, jute.OK
}

func (x *txn) setData(who Caller, req jute.SetData) jute.MultiResult {
	n, code := x.find(who, jute.PathVersion{Path: req.Path, Version: req.Version}, jute.PermWrite)
	if code != jute.OK {
		return failed(code)
	}
	if x.steps > 1 {
		stat, data := n.stat, n.data
		x.undo = append(x.undo, func() { n.stat, n.data = stat, data })
	}
	n.data = req.Data
	n.stat.Version++
	n.stat.Mtime, n.stat.Mzxid = x.now, x.zxid
	x.changes = append(x.changes, Change{jute.EventNodeDataChanged, req.Path, n.acl})
	return jute.MultiResult{Op: jute.OpSetData, Stat: n.status()}
}

func (x *txn) check(who Caller, req jute.PathVersion) jute.MultiResult {
	if _, code := x.find(who, req, jute.PermRead); code != jute.OK {
		return failed(code)
	}
	return jute.MultiResult{Op: jute.OpCheck}
}

func (x *txn) setACL(who Caller, req jute.SetACL) (jute.Stat, jute.Code) {
	if !validPath(req.Path) {
		return jute.Stat{}, jute.BadArguments
	}
	acl, code := resolveACL(req.ACL, who.ids)
	if code != jute.OK {
		return jute.Stat{}, code
	}
	n, ok := x.tree.lookup(req.Path)
	switch {
	case !ok:
		return jute.Stat{}, jute.NoNode
	case !allowed(n.acl, jute.PermAdmin, who.ids):
		return jute.Stat{}, jute.NoAuth
	case req.Version != -1 && req.Version != n.stat.Aversion:
		return jute.Stat{}, jute.BadVersion
	}
	n.acl = acl
	n.stat.Aversion++
	return n.status(), jute.OK
}
