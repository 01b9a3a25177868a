package zkmem

import (
	"maps"
	"slices"
	"time"

	"understudy/election/jute"
)

// Data is what a server serves: the tree, and the zxid of its last change. It knows neither connections nor watches, and has no
// lock of its own.
type Data struct {
	Zxid int64 // epoch<<32 | counter
	Now  int64 // of a change that comes from another server, in milliseconds since 1970; else 0
	tree *tree
}

// NewData makes an empty tree.
func NewData() *Data { return &Data{tree: newTree()} }

// Clone makes a copy that shares nothing with d.
func (d *Data) Clone() *Data { return &Data{Zxid: d.Zxid, Now: d.Now, tree: d.tree.clone()} }

// begin starts a transaction under the next zxid. It is used up even if the transaction comes to nothing.
func (d *Data) begin() *txn {
	d.Zxid++
	now := d.Now
	if now == 0 {
		now = time.Now().UnixMilli()
	}
	return &txn{tree: d.tree, zxid: d.Zxid, now: now}
}

// EndSession deletes the ephemerals of a session in one transaction.
func (d *Data) EndSession(id int64) []Change {
	x := d.begin()
	for _, path := range d.tree.owned(id) {
		x.remove(path)
	}
	return x.changes
}

// Paths is the paths of all znodes, in their order.
func (d *Data) Paths() []string { return slices.Sorted(maps.Keys(d.tree.nodes)) }

// Znode is what a read of a path shows.
func (d *Data) Znode(path string) (data []byte, stat jute.Stat, ok bool) {
	n, code := d.find(path)
	if code != jute.OK {
		return nil, jute.Stat{}, false
	}
	return n.data, n.status(), true
}

func (d *Data) find(path string) (*node, jute.Code) {
	n, ok := d.tree.lookup(path)
	if !ok {
		return nil, jute.NoNode
	}
	return n, jute.OK
}
