package replica

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"understudy/supervisor/host"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// ErrParting ends Keep without ending the programs: another image of this process continues them, or Keep once more.
var ErrParting = errors.New("another image of this process takes the copy over")

func parting(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrParting) }

// Carried is a copy whose programs run, for the next image of this process.
type Carried struct {
	Warm      bool             `json:"warm,omitempty"`
	Lease     uint64           `json:"lease"` // of its tree
	Tree      json.RawMessage  `json:"tree"`
	Run       *unit.CarriedRun `json:"run,omitempty"` // nil: a term has its tree, under the session's lease
	Following Active           `json:"following,omitzero"`
	Asked     time.Time        `json:"asked"`
	Shown     Shown            `json:"shown"`
	State     *state           `json:"state,omitempty"` // nil: it cannot be read

	tree host.Tree
}

// Trees is how many trees live under its lease.
func (r *Carried) Trees() int {
	if r.Run == nil {
		return 0
	}
	return 1
}

// Find looks its tree and its processes up in what was handed over.
func (r *Carried) Find(find func(tree json.RawMessage, run *unit.CarriedRun) (host.Tree, error)) (err error) {
	r.tree, err = find(r.Tree, r.Run)
	return err
}

// Carry returns what the next image has to know, after Keep has ended by ErrParting; nil: nothing of it runs.
func (c *Copy) Carry() *Carried {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &Carried{Warm: c.conf.Warm != nil, Following: c.following, Asked: c.asked, Shown: c.shown}
	if !c.carry(r) {
		return nil
	}
	if now, unread := c.data.known(); unread == nil {
		r.State = &now
	}
	return r
}

// Adopt continues what a previous image has carried, before Keep.
func (c *Copy) Adopt(r *Carried) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.adopt(r)
	c.following, c.asked, c.shown, c.halted = r.Following, r.Asked, r.Shown, ""
	if r.State != nil {
		c.data.set(*r.State, nil)
	}
}

// parts reports whether the programs of a run that has ended are left to the next image.
func (c *Copy) parts(ctx context.Context, run *unit.Run) bool {
	if !parting(ctx) || c.orders.current() != nil {
		return false
	}
	carried, err := handOver(run, ErrParting)
	c.lending.mu.Lock()
	c.resume = carried
	c.lending.mu.Unlock()
	return err == nil
}

// Busy reports whether prepare or reclone runs, and whether something else does that passes: a start, or an operator's order.
func (c *Copy) Busy() (mends, passes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mends.runs, c.orders.current() != nil || c.run != nil && !wait.Closed(c.run.Ready()) && !wait.Closed(c.run.Done())
}
