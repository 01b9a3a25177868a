package election

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-zookeeper/zk"
)

// ControlZnode is the znode to which operators write their orders. Nodes watch it together with the preferred nodes, and with the order
// that drains this node.
type ControlZnode struct {
	s     *Session
	paths Paths
	birth Birth // of the service's folder at the candidate's beginning
}

// Watch reports the intents, and each change of them, until ctx or the session ends, or all znodes of the service are deleted.
func (c *ControlZnode) Watch(ctx context.Context, tell func(Intents)) error {
	ctx = InTurn(ctx)
	known := int64(0)        // the control znode's czxid
	fit := map[string]bool{} // preferences that are known to be a session's
	var out *Drained         // as it was told
	for again := (pacing{}); ; {
		control, names, changed, err := c.getAll(ctx)
		if err == nil && control.stat.Czxid != known { // it may be new, as the rest of the service may be
			if err = c.stillThere(ctx); err == nil {
				known = control.stat.Czxid
			}
		}
		if err == nil {
			names, err = c.fit(ctx, names, fit)
		}
		var drained *Drained
		var by string
		var undrained <-chan zk.Event
		if err == nil {
			drained, undrained, err = c.drained(ctx)
		}
		if err == nil && drained == nil && out != nil {
			by, err = c.undrainer(ctx, *out)
		}
		if err == nil {
			out = drained
			tell(Intents{ParseControl(control.data), control.stat.Version, Priorities(names), drained, by})
			err = c.s.await(ctx, control.changed, changed, undrained)
		} else if unknown(err) {
			err = again.wait(ctx, c.s.client, err)
		}
		if errors.Is(err, zk.ErrNoNode) {
			return fmt.Errorf("%w: %w", ErrDeleted, err)
		}
		if err != nil {
			return err
		}
	}
}

// stillThere reports whether the service's folder is still the one of the candidate's beginning.
func (c *ControlZnode) stillThere(ctx context.Context) error {
	dir, err := c.s.getStat(ctx, c.paths.Dir())
	if err == nil && born(dir) != c.birth {
		return ErrDeleted
	}
	return err
}

func (c *ControlZnode) getAll(ctx context.Context) (control view, names []string, changed <-chan zk.Event, err error) {
	control, err = c.s.getW(ctx, c.paths.Control())
	if err == nil && !control.exists {
		err = c.remake(ctx, c.paths.Control())
	}
	if err != nil {
		return control, nil, nil, err
	}
	names, changed, err = c.s.watchChildren(ctx, c.paths.Preferred())
	if errors.Is(err, zk.ErrNoNode) {
		err = c.remake(ctx, c.paths.Preferred())
	}
	return control, names, changed, err
}

// remake recreates a znode that was deleted by hand, and asks for another read.
func (c *ControlZnode) remake(ctx context.Context, path string) error {
	if err := c.s.ensure(ctx, []string{path}); err != nil {
		return err
	}
	return errUnanswered
}

// fit drops preferences that no session owns: a restore has made them, and a node that gave the service up for one would find nobody
// there, again and again. It checks each once; a node that replaces one gets a new name in the list.
func (c *ControlZnode) fit(ctx context.Context, names []string, known map[string]bool) (fit []string, err error) {
	maps.DeleteFunc(known, func(name string, _ bool) bool { return !slices.Contains(names, name) })
	for _, name := range names {
		if !known[name] {
			v, err := c.s.exists(ctx, c.paths.Preferred()+"/"+name)
			if err != nil {
				return nil, err
			}
			if !v.exists || v.stat.EphemeralOwner == 0 {
				continue
			}
			known[name] = true
		}
		fit = append(fit, name)
	}
	return fit, nil
}

// Amend changes the orders, and repeats that until it succeeds; change reports false if there is nothing to change.
func (c *ControlZnode) Amend(ctx context.Context, change func(*Control) bool) error {
	return wrap("write the control znode", retry(ctx, c.s.client, func() error {
		v, err := c.s.get(ctx, c.paths.Control())
		if err != nil {
			return err
		}
		control := ParseControl(v.data)
		if !v.exists || !change(&control) {
			return nil
		}
		return c.s.set(ctx, c.paths.Control(), control.Merge(v.data), v.stat.Version)
	}))
}
