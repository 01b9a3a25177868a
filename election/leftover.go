package election

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-zookeeper/zk"
)

// Leftover is added to a breadcrumb once a process of its tree is known to be alive on its machine, and cannot be killed. From then on
// no delay is a proof of its death: P5.
type Leftover struct {
	Known   bool      `json:"-"` // the breadcrumb says so, whether or not the fields below can be read
	Pid     int       `json:"pid,omitempty"`
	Start   uint64    `json:"start,omitempty"` // as /proc tells it; 0: an older version wrote it
	Program string    `json:"program,omitempty"`
	State   string    `json:"state,omitempty"`
	Tracer  int       `json:"tracer,omitempty"` // the pid of its tracer
	By      string    `json:"by,omitempty"`     // the node that says so
	Since   time.Time `json:"since,omitzero"`
}

// IsZero tells whether nothing is known to be alive.
func (l Leftover) IsZero() bool { return !l.Known }

// UnmarshalJSON accepts anything: whatever is there, somebody has seen a process alive.
func (l *Leftover) UnmarshalJSON(data []byte) error {
	type plain Leftover
	var p plain
	_ = json.Unmarshal(data, &p) // the fields are only shown
	*l = Leftover(p)
	l.Known = true
	return nil
}

// Remains adds to the breadcrumb, if it names this tree, that something of it is alive. It reports whether the breadcrumb says so
// now. No lock is needed for it: the transaction holds only while nobody has claimed since the breadcrumb was read, and while that
// is the same; so a claimant that was about to overwrite it finds another version.
func (c *Crumb) Remains(ctx context.Context, tree json.RawMessage, l Leftover) (bool, error) {
	l.Known, l.By = true, c.s.cfg.Node.Node
	said, err := c.ofTree(ctx, tree, func(named BreadCrumb, v view) (any, error) {
		if was := named.Leftover; was.Known && !l.completes(was) {
			return nil, nil
		}
		said := merge(v.data, map[string]Leftover{"leftover": l})
		return &zk.SetDataRequest{Path: c.paths.Crumb(), Data: said, Version: v.stat.Version}, nil
	})
	return said, wrap("note in the breadcrumb that processes are alive", err)
}

// same tells whether it names the same process, or none as well.
func (l Leftover) same(as Leftover) bool {
	return l.Known == as.Known && l.Pid == as.Pid && l.Start == as.Start
}

// completes tells whether it names a process where the former one names none. A named one stays: nobody else may know it.
func (l Leftover) completes(was Leftover) bool {
	return l.Pid != 0 && (was.Pid == 0 || was.Pid == l.Pid && was.Start == 0 && l.Start != 0)
}

// MarkDead removes the breadcrumb if it names this tree, of this node, and says that something of it is alive: the tree is proved dead
// now, its effects are undone, and nobody has to wait for another proof. dead checks the process that the breadcrumb names, last. It
// reports whether the breadcrumb was removed. P2.
func (c *Crumb) MarkDead(ctx context.Context, tree json.RawMessage, dead func(Leftover) error) (buried bool, err error) {
	_, err = c.ofTree(ctx, tree, func(named BreadCrumb, v view) (any, error) {
		buried = false
		if !named.Leftover.Known || named.Node != c.s.cfg.Node.Node { // we cannot know that another node's effects are undone
			return nil, nil
		}
		if err := dead(named.Leftover); err != nil {
			return nil, err
		}
		buried = true
		return &zk.DeleteRequest{Path: c.paths.Crumb(), Version: v.stat.Version}, nil
	})
	return buried && err == nil, wrap("remove the breadcrumb of a dead child", err)
}
