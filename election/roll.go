package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
)

// Roll lists the nodes that the writer of a breadcrumb relies on: it goes on without ZooKeeper only while each has promised not to start
// the service.
type Roll struct {
	changed chan zk.Event // holds one when there is a list to write

	mu     sync.Mutex // guards the fields below
	wanted *Failsafe  // the list that the breadcrumb should have
	listed *Failsafe  // the list that it has, as far as we know
	asked  []Peer     // all nodes that it may list now
	acked  bool       // a list has been acknowledged, and the present one cannot be empty
}

func newRoll() *Roll { return &Roll{changed: make(chan zk.Event, 1)} }

// Enlist makes the breadcrumb list these members. From now on we need a promise of each of them, whether or not the write succeeds.
// P1: we also need those of previous lists until this one is acknowledged. Once the breadcrumb may list nobody, its reader relies on our
// not going on.
func (r *Roll) Enlist(members []Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = &Failsafe{Members: slices.Clone(members)}
	r.acked = r.acked && len(members) > 0
	for _, p := range members {
		if !slices.Contains(r.asked, p) {
			r.asked = append(r.asked, p)
		}
	}
	r.nudge()
}

// Counted returns all nodes that the breadcrumb may list. It reports false until a list with a node has been acknowledged.
func (r *Roll) Counted() ([]Peer, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked), r.acked
}

// due is the list to write; nil: the breadcrumb has it already.
func (r *Roll) due() *Failsafe {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wanted == r.listed {
		return nil
	}
	return r.wanted
}

// written notes that the breadcrumb has a list.
func (r *Roll) written(list *Failsafe) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed = list
	r.acked = len(list.Members) > 0 && len(r.wanted.Members) > 0
	if r.wanted == list {
		r.asked = slices.Clone(list.Members)
	}
}

func (r *Roll) nudge() {
	select {
	case r.changed <- zk.Event{}:
	default:
	}
}

// enroll writes the wanted list, unless the breadcrumb has it already.
func (c *Claim) enroll(ctx context.Context, again *pacing) error {
	list := c.Roll.due()
	if list == nil {
		return nil
	}
	c.crumb.Failsafe = list
	err := c.rewrite(ctx)
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("write the breadcrumb: %w", err)
	case err != nil: // unknown, or the next read shows it
		if err := again.wait(ctx, c.s.client, err); err != nil {
			return err
		}
		if err := c.recheck(ctx); err != nil {
			return err
		}
		c.Roll.nudge()
		return nil
	}
	c.Roll.written(list)
	return nil
}
