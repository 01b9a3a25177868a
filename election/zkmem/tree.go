package zkmem

import (
	"maps"
	"slices"

	"understudy/election/jute"
)

// containerOwner stands where an ephemeral has its session.
const containerOwner int64 = -1 << 63

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
	if s.EphemeralOwner == containerOwner {
		s.EphemeralOwner = 0 // clients are not told
	}
	return s
}

func (n *node) childNames() []string { return slices.Sorted(maps.Keys(n.children)) }

// ephemeral tells whether the node goes with a session.
func (n *node) ephemeral() bool {
	return n.stat.EphemeralOwner != 0 && n.stat.EphemeralOwner != containerOwner
}

// tree is all nodes by their path.
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]map[string]struct{} // by session
	containers map[string]struct{}
}

func newTree() *tree {
	t := &tree{
		nodes:      map[string]*node{},
		ephemerals: map[int64]map[string]struct{}{},
		containers: map[string]struct{}{},
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
	t.recount(path, n)
	t.counted(path, 1, len(n.data))
	switch {
	case n.stat.EphemeralOwner == containerOwner:
		t.containers[path] = struct{}{}
	case n.ephemeral():
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
	t.counted(path, -1, -len(n.data))
	delete(t.containers, path)
	if owned := t.ephemerals[n.stat.EphemeralOwner]; owned != nil {
		delete(owned, path)
		if len(owned) == 0 {
			delete(t.ephemerals, n.stat.EphemeralOwner)
		}
	}
}

// owned is the ephemerals of a session, in the order of their paths.
func (t *tree) owned(session int64) []string { return slices.Sorted(maps.Keys(t.ephemerals[session])) }

func (t *tree) ephemeralCount() (n int) {
	for _, owned := range t.ephemerals {
		n += len(owned)
	}
	return n
}

// count counts the root twice, as the real server does: it goes by two names.
func (t *tree) count() int { return len(t.nodes) + 1 }

func (t *tree) dataSize() (n int) {
	for path, node := range t.nodes {
		n += len(path) + len(node.data)
	}
	return n
}
