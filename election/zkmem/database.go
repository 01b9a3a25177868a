package zkmem

import (
	"time"

	"understudy/election/jute"
)

// database is the data that all servers of an ensemble agree on: the tree, the sessions, and the zxid of the last change. It
// knows neither connections nor watches, and has no lock of its own.
type database struct {
	tree     *tree
	sessions *sessionTable
	timeouts map[int64]time.Duration // of each session, as it was negotiated last
	created  map[int64]time.Duration // of each session, as it was negotiated first: the log keeps this one
	zxid     int64                   // epoch<<32 | counter
	leaders  int64                   // the leader's clock, in milliseconds, for a transaction that comes from there; else 0
}

func newDatabase(tick time.Duration) *database {
	return &database{
		tree:     newTree(),
		sessions: newSessionTable(tick, time.Now()),
		timeouts: map[int64]time.Duration{},
		created:  map[int64]time.Duration{},
	}
}

// begin starts a transaction under the next zxid. It is used up even if the transaction comes to nothing.
func (d *database) begin() *txn {
	d.zxid++
	now := d.leaders
	if now == 0 {
		now = time.Now().UnixMilli()
	}
	return &txn{tree: d.tree, zxid: d.zxid, now: now}
}

// newEpoch is a newly elected leader's.
func (d *database) newEpoch() { d.zxid = (d.zxid>>32 + 1) << 32 }

func (d *database) openSession(timeout time.Duration) int64 {
	d.begin()
	s := d.sessions.create(timeout)
	d.timeouts[s.id], d.created[s.id] = timeout, timeout
	return s.id
}

func (d *database) touch(id int64, timeout time.Duration) bool {
	if !d.sessions.touch(id, timeout) {
		return false
	}
	d.timeouts[id] = timeout
	return true
}

// closeSession ends a session and, in the same transaction, deletes its ephemerals.
func (d *database) closeSession(id int64) []change {
	x := d.begin()
	for _, path := range d.tree.owned(id) {
		x.remove(path)
	}
	delete(d.sessions.byID, id)
	delete(d.timeouts, id)
	delete(d.created, id)
	return x.changes
}

// idleContainers is the containers that had children and have none any more.
func (d *database) idleContainers() (paths []string) {
	for path := range d.tree.containers {
		if n := d.tree.nodes[path]; len(n.children) == 0 && n.stat.Cversion > 0 {
			paths = append(paths, path)
		}
	}
	return paths
}

func (d *database) deleteContainer(path string) []change {
	x := d.begin()
	x.remove(path)
	return x.changes
}

func (d *database) find(path string) (*node, jute.Code) {
	n, ok := d.tree.lookup(path)
	if !ok {
		return nil, jute.NoNode
	}
	return n, jute.OK
}
