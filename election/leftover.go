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
	Start   uint64    `json:"start,omitempty"` // as /proc tells it
	Program string    `json:"program,omitempty"`
	State   string    `json:"state,omitempty"`
	Tracer  int       `json:"tracer,omitempty"` // the pid of its tracer
	By      string    `json:"by,omitempty"`     // the node that says so
	Since   time.Time `json:"since,omitzero"`
}

// IsZero reports whether no process is known to be alive.
func (l Leftover) IsZero() bool { return !l.Known }

// UnmarshalJSON accepts any value: in any form it says that a process was seen alive.
func (l *Leftover) UnmarshalJSON(data []byte) error {
	type plain Leftover
	var p plain
	_ = json.Unmarshal(data, &p) // the fields are only shown
	*l = Leftover(p)
	l.Known, l.Program, l.State, l.By = true, Line(p.Program), Line(p.State), Line(p.By)
	return nil
}

// NoteLeftover notes in the breadcrumb, if it names this tree, that a process of it is alive. It reports whether the breadcrumb says so
// now. It needs no lock: the transaction succeeds only while nobody has claimed since we read the breadcrumb, and while that is
// unchanged; so a claimant that was about to overwrite it finds another version.
func (c *Crumb) NoteLeftover(ctx context.Context, tree json.RawMessage, l Leftover) (bool, error) {
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

// completes reports whether it names a process and the previous one names none. A named one stays: perhaps no other node knows it.
func (l Leftover) completes(was Leftover) bool {
	return l.Pid != 0 && was.Pid == 0
}

// Awaits reports whether the breadcrumb's own node has something to prove before another one: that a process which was seen alive is dead,
// or that effects are undone. For one that needs a proof, it is the proof.
func (b BreadCrumb) Awaits() bool {
	return b.Leftover.Known || len(b.Names) > 0 || len(b.Left) > 0 || len(b.NeedProof) > 0 || len(b.Survive) > 0
}

// MarkDead removes the breadcrumb if it names this tree, of this node, and says that a process of it is alive or that it has effects: the
// tree is proved dead now, its effects are undone, and nobody has to wait for another proof. Last, dead checks the process that the
// breadcrumb names. MarkDead reports whether it removed the breadcrumb. P2.
func (c *Crumb) MarkDead(ctx context.Context, tree json.RawMessage, dead func(Leftover) error) (buried bool, err error) {
	_, err = c.ofTree(ctx, tree, func(named BreadCrumb, v view) (any, error) {
		buried = false
		if !named.Awaits() || named.Node != c.s.cfg.Node.Node { // we cannot know that another node's effects are undone
			return nil, nil
		}
		if err := dead(named.Leftover); err != nil {
			return nil, err
		}
		buried = true
		return &zk.DeleteRequest{Path: c.paths.Crumb(), Version: v.stat.Version}, nil
	})
	return buried && err == nil, wrap("remove the breadcrumb of a dead program", err)
}
