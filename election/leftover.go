package election

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// Leftover is what a breadcrumb says once something of the tree that it names is known to be alive on its machine, and not to be
// killed. From then on no delay is a proof of its death: P5.
type Leftover struct {
	Known   bool      `json:"-"` // the breadcrumb says so, whatever it says of it
	Pid     int       `json:"pid,omitempty"`
	Start   uint64    `json:"start,omitempty"` // as /proc tells it; 0: an older version wrote it
	Program string    `json:"program,omitempty"`
	State   string    `json:"state,omitempty"`
	Tracer  int       `json:"tracer,omitempty"` // the pid of who traces it
	By      string    `json:"by,omitempty"`     // the node that says so
	Since   time.Time `json:"since,omitzero"`
}

// IsZero tells whether there is nothing to be said.
func (l Leftover) IsZero() bool { return !l.Known }

// UnmarshalJSON takes in anything. Whatever stands there, somebody has seen something alive.
func (l *Leftover) UnmarshalJSON(data []byte) error {
	type plain Leftover
	var p plain
	_ = json.Unmarshal(data, &p) // what it says of it is only shown
	*l = Leftover(p)
	l.Known = true
	return nil
}

// Remains adds to the breadcrumb, if it names this tree, that something of it is alive. It reports whether the breadcrumb says so
// now. No lock is needed for it: the transaction holds only while nobody has claimed since the breadcrumb was read, and while that
// is the same; so a claimant that was about to overwrite it finds another version.
func (c *Candidate) Remains(ctx context.Context, tree json.RawMessage, l Leftover) (bool, error) {
	l.Known, l.By = true, c.s.cfg.Node.Node
	said, err := c.ofTree(ctx, tree, func(named BreadCrumb, v view) (any, error) {
		if was := named.Leftover; was.Known && !l.completes(was) {
			return nil, nil
		}
		all := map[string]json.RawMessage{} // what a later version says besides stays
		if err := json.Unmarshal(v.data, &all); err != nil {
			return nil, err
		}
		all["leftover"] = encode(l)
		return &zk.SetDataRequest{Path: c.paths.Crumb(), Data: encode(all), Version: v.stat.Version}, nil
	})
	return said, wrap("say in the breadcrumb that something is alive", err)
}

// same tells whether it names the same process, or none as well.
func (l Leftover) same(as Leftover) bool {
	return l.Known == as.Known && l.Pid == as.Pid && l.Start == as.Start
}

// completes tells whether it names the process that the former one does not. One that is named stays: it may be known to nobody else.
func (l Leftover) completes(was Leftover) bool {
	return l.Pid != 0 && (was.Pid == 0 || was.Pid == l.Pid && was.Start == 0 && l.Start != 0)
}

// Bury removes the breadcrumb if it names this tree, of this node, and says that something of it is alive: it is proved dead now, what
// it did is undone, and nobody has to wait for another proof. dead has the last word on what the very breadcrumb tells of. It reports
// whether the breadcrumb was removed. P2.
func (c *Candidate) Bury(ctx context.Context, tree json.RawMessage, dead func(Leftover) error) (buried bool, err error) {
	_, err = c.ofTree(ctx, tree, func(named BreadCrumb, v view) (any, error) {
		buried = false
		if !named.Leftover.Known || named.Node != c.s.cfg.Node.Node { // what another node's did is not known to be undone
			return nil, nil
		}
		if err := dead(named.Leftover); err != nil {
			return nil, err
		}
		buried = true
		return &zk.DeleteRequest{Path: c.paths.Crumb(), Version: v.stat.Version}, nil
	})
	return buried && err == nil, wrap("remove the breadcrumb of what is dead now", err)
}

// ofTree carries out a change of the breadcrumb if that names the tree, and reports whether it does; nil: there is nothing to be
// changed.
func (c *Candidate) ofTree(ctx context.Context, tree json.RawMessage, change func(BreadCrumb, view) (any, error)) (bool, error) {
	for again := (pacing{}); ; {
		names, err := c.tryOfTree(ctx, tree, change)
		if !again.passes(err) {
			return names && err == nil, err
		}
		if err := again.wait(ctx, c.s, err); err != nil {
			return false, err
		}
	}
}

func (c *Candidate) tryOfTree(ctx context.Context, tree json.RawMessage, change func(BreadCrumb, view) (any, error)) (bool, error) {
	dir, err := c.s.stat(ctx, c.paths.Dir()) // first: its version tells of claims after it
	if err != nil {
		return false, err
	}
	v, err := c.s.read(ctx, c.paths.Crumb())
	if err != nil || !v.exists {
		return false, err
	}
	named, err := ReadBreadCrumb(v.data)
	if err != nil || len(tree) == 0 || !bytes.Equal(named.Tree, tree) {
		return false, nil // it is not about that tree
	}
	op, err := change(named, v)
	if err != nil || op == nil {
		return true, err
	}
	_, err = c.s.multi(ctx, &zk.CheckVersionRequest{Path: c.paths.Dir(), Version: dir.Version}, op)
	return true, err
}

// Named reads whom the breadcrumb names, and whether there is one that can be read.
func (c *Candidate) Named(ctx context.Context) (BreadCrumb, bool, error) {
	for again := (pacing{}); ; {
		v, err := c.s.read(ctx, c.paths.Crumb())
		switch {
		case err == nil && !v.exists:
			return BreadCrumb{}, false, nil
		case err == nil:
			b, err := ReadBreadCrumb(v.data)
			return b, err == nil, nil
		case !unknown(err):
			return BreadCrumb{}, false, fmt.Errorf("read the breadcrumb: %w", err)
		}
		if err := again.wait(ctx, c.s, err); err != nil {
			return BreadCrumb{}, false, err
		}
	}
}
