package zkmem

import (
	"maps"
	"slices"

	"understudy/election/jute"
)

// node is one znode. What it shares with a jute.Stat is kept there, but for Cversion: stat.Cversion counts the
// children ever created, which also numbers the sequential ones; clients are shown the count of all changes.
type node struct {
	data     []byte
	acl      []jute.ACL // nil is open
	stat     jute.Stat
	children map[string]struct{}
}

func (n *node) status() jute.Stat {
	s := n.stat
	s.NumChildren = int32(len(n.children))
	s.DataLength = int32(len(n.data))
	s.Cversion = s.Cversion*2 - s.NumChildren
	return s
}

func (n *node) childNames() []string { return slices.Sorted(maps.Keys(n.children)) }

// ephemeral reports whether the node goes with a session.
func (n *node) ephemeral() bool { return n.stat.EphemeralOwner != 0 }

// tree is all nodes by their path.
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]map[string]struct{} // by session
}

func newTree() *tree {
	t := &tree{
		nodes:      map[string]*node{},
		ephemerals: map[int64]map[string]struct{}{},
	}
	t.nodes["/"] = &node{data: []byte{}, children: map[string]struct{}{"zookeeper": {}}}
	t.nodes["/zookeeper"] = &node{data: []byte{}, children: map[string]struct{}{"config": {}, "quota": {}}}
	t.nodes["/zookeeper/quota"] = &node{data: []byte{}}
	config := &node{data: []byte{}, acl: jute.WorldACL(jute.PermRead)}
	config.stat.Aversion = -1
	t.nodes["/zookeeper/config"] = config
	return t
}

// lookup finds a node; the root goes by the name of "" as well.
func (t *tree) lookup(path string) (*node, bool) {
	if path == "" {
		path = "/"
	}
	n, ok := t.nodes[path]
	return n, ok
}

func (t *tree) insert(path, parent, name string, n *node) {
	p, _ := t.lookup(parent)
	if p.children == nil {
		p.children = map[string]struct{}{}
	}
	p.children[name] = struct{}{}
	t.nodes[path] = n
	if n.ephemeral() {
		owned := t.ephemerals[n.stat.EphemeralOwner]
		if owned == nil {
			owned = map[string]struct{}{}
			t.ephemerals[n.stat.EphemeralOwner] = owned
		}
		owned[path] = struct{}{}
	}
}

func (t *tree) remove(path, parent, name string) {
	n := t.nodes[path]
	p, _ := t.lookup(parent)
	delete(p.children, name)
	delete(t.nodes, path)
	if owned := t.ephemerals[n.stat.EphemeralOwner]; owned != nil {
		delete(owned, path)
		if len(owned) == 0 {
			delete(t.ephemerals, n.stat.EphemeralOwner)
		}
	}
}

// owned is the ephemerals of a session, in the order of their paths.
func (t *tree) owned(session int64) []string { return slices.Sorted(maps.Keys(t.ephemerals[session])) }

func (t *tree) clone() *tree {
	c := &tree{nodes: map[string]*node{}, ephemerals: map[int64]map[string]struct{}{}}
	for path, n := range t.nodes {
		one := *n
		one.data, one.children = slices.Clone(n.data), maps.Clone(n.children)
		c.nodes[path] = &one
	}
	for id, owned := range t.ephemerals {
		c.ephemerals[id] = maps.Clone(owned)
	}
	return c
}
