package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
)

// Roll is the nodes that the writer of a breadcrumb counts on: it goes on without ZooKeeper only while each has promised not to start
// the service.
type Roll struct {
	changed chan zk.Event // holds one when there is something to be written

	mu     sync.Mutex // guards what follows
	wanted *Failsafe  // the list that the breadcrumb is to have
	listed *Failsafe  // the list that it is known to have
	asked  []Peer     // all nodes that it may list now
	acked  bool       // a list has been acknowledged, and the present one cannot be empty
}

func newRoll() *Roll { return &Roll{changed: make(chan zk.Event, 1)} }

// Enlist has the breadcrumb list these members. From now on, whatever becomes of the writing, each of them is counted on.
// P1: those of former lists are until this one is acknowledged. Once the breadcrumb may say that there is nobody, its reader relies
// on our not going on.
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

// Counted is everybody that the breadcrumb may list. It reports false while no list has been acknowledged that names anybody.
func (r *Roll) Counted() ([]Peer, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked), r.acked
}

// due is the list to be written; nil: the breadcrumb says it.
func (r *Roll) due() *Failsafe {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wanted == r.listed {
		return nil
	}
	return r.wanted
}

// written notes that the breadcrumb says a list.
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

// enroll writes the list that is wanted, unless the breadcrumb says it.
func (c *Claim) enroll(ctx context.Context, again *pacing) error {
	list := c.Roll.due()
	if list == nil {
		return nil
	}
	c.crumb.Failsafe = list
	failed, err := c.rewrite(ctx)
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("write the breadcrumb: %w", err)
	case err != nil: // unknown, or it shows in the read that follows
		if err := again.wait(ctx, c.s.client, err); err != nil {
			return err
		}
		if failed == 0 {
			if err := c.renumber(ctx); err != nil {
				return err
			}
		}
		c.Roll.nudge()
		return nil
	}
	c.Roll.written(list)
	return nil
}
