package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy/election"
	"understudy/supervisor/wait"
)

// CopyRequest is what a node is asked to do with its copy of a replicated service, or with a warm program that stands by.
type CopyRequest struct {
	Service, Node string
	Do            string // restart, reload, or reclone
	By            string
	Force         bool // although the copy that is cloned is the only one beside the primary
}

// OrderCopy has a node do something with its copy, and returns once that is done. The primary is restarted, and told to reload, as Restart
// and Reload do it.
func (c *Cluster) OrderCopy(ctx context.Context, r CopyRequest) error {
	v, err := c.one(ctx, r.Service)
	if err != nil {
		return err
	}
	primary := r.Node == v.Active
	warm := slices.ContainsFunc(v.Members, func(m MemberStatus) bool { return m.Warm })
	switch m := member(v, r.Node); {
	case primary && r.Do == "restart":
		return c.Restart(ctx, r.Service, r.By)
	case primary && r.Do == "reload":
		return c.Reload(ctx, r.Service, r.By)
	case warm && r.Do == "reclone":
		return refused("%s has no data of its own that could be cloned: its program stands by", r.Service)
	case len(v.Copies) == 0 && !warm:
		return refused("%s is neither replicated nor warm: it runs on its active node only", r.Service)
	case primary:
		return refused("%s is the primary, whose data the other copies get: `understudy switchover %s` first", r.Node, r.Service)
	case !warm && !slices.ContainsFunc(v.Copies, func(one CopyStatus) bool { return one.Node == r.Node }):
		return &UnknownError{"node", r.Node, copyNodes(v)}
	case m.Role == "":
		return refused("%s is not connected to ZooKeeper, and would not see the order", r.Node)
	case warm && m.Drained != nil:
		return refused("%s is %s, so its program does not stand by: `understudy undrain %s` first", r.Node, m.Drained.Words, r.Node)
	case v.Active == "" && r.Do == "reclone":
		return refused("no copy of %s is promoted from which that on %s could be cloned", r.Service, r.Node)
	case r.Do == "reclone" && !r.Force && follows(v, r.Node) && !slices.ContainsFunc(v.Copies, func(one CopyStatus) bool {
		return one.Is == CopyFollower && one.Node != r.Node && follows(v, one.Node)
	}):
		return refused("only the copy on %s has the data of the primary on %s: until it is cloned, a loss of %s loses all of it "+
			"(--force orders it anyway)", r.Node, v.Active, v.Active)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return errors.New("an order for a copy needs a deadline")
	}
	order := election.CopyOrder{
		Order: election.Order{ID: rand.Text(), Token: v.Token, Node: r.Node, By: r.By}, Do: r.Do, Deadline: deadline.UTC(),
	}
	var other *election.CopyOrder
	err = c.order(ctx, r.Service, func(o election.Control) (election.Control, bool) {
		if other = o.Copy; other != nil && other.Failed == "" && time.Now().Before(other.Deadline) {
			return o, false
		}
		o.Copy, other = &order, nil
		return o, true
	})
	if err == nil && other != nil {
		return refused("%s has ordered a %s of the copy on %s, which is waited for: try again later", other.By, other.Do, other.Node)
	}
	defer takeBack(ctx, c.znodes, r.Service, order.ID)
	for err == nil {
		n, readErr := c.read(ctx, election.Paths{Root: c.root, Service: r.Service}.Control())
		if readErr != nil {
			return readErr
		}
		switch o := election.ParseControl(n.data).Copy; {
		case o == nil || o.ID != order.ID:
			return nil
		case o.Failed != "":
			return copyFailure(fmt.Sprintf("%s of the copy of %s on %s: %s", r.Do, r.Service, r.Node, o.Failed))
		}
		if !wait.For(ctx, lookEvery) {
			err = fmt.Errorf("%s has not done it yet%s: %w", r.Node, c.copyMeanwhile(ctx, r), context.Cause(ctx))
		}
	}
	return err
}

// copyFailure is an ErrFailed.
type copyFailure string

func (f copyFailure) Error() string { return string(f) }

// Is makes it ErrFailed.
func (copyFailure) Is(target error) bool { return target == ErrFailed }

// copyMeanwhile describes a copy that an order is not done with.
func (c *Cluster) copyMeanwhile(ctx context.Context, r CopyRequest) (words string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if now, err := c.one(ctx, r.Service); err == nil {
		for _, one := range now.Copies {
			if one.Node == r.Node {
				words = ", its copy is " + one.Words
			}
		}
	}
	if r.Do == "reclone" {
		words += " (a clone that has begun continues)"
	}
	return words
}

// follows reports whether a node's copy has the primary's data.
func follows(v ServiceStatus, node string) bool {
	return slices.ContainsFunc(v.Copies, func(one CopyStatus) bool {
		return one.Node == node && one.Why == "" && one.Promotion == v.Token && one.Toward == 0
	})
}

func copyNodes(v ServiceStatus) (all []string) {
	for _, one := range v.Copies {
		all = append(all, one.Node)
	}
	slices.Sort(all)
	return all
}
