package election

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// Crumb is a service's breadcrumb for nodes that read and change it without the lock.
type Crumb struct {
	s     *Session
	paths Paths
}

// WaitGone waits until the service has no breadcrumb: then the node that it named runs no process of the service.
func (c *Crumb) WaitGone(ctx context.Context) error {
	for {
		v, err := outcome(ctx, c.s.client, func() (view, error) { return c.s.getW(ctx, c.paths.Crumb()) })
		if err != nil || !v.exists {
			return err
		}
		if err := c.s.await(ctx, v.changed); err != nil {
			return err
		}
	}
}

// Named reads the node that the breadcrumb names, with its token, and reports whether there is a readable one.
func (c *Crumb) Named(ctx context.Context) (BreadCrumb, bool, error) {
	v, err := outcome(ctx, c.s.client, func() (view, error) { return c.s.get(ctx, c.paths.Crumb()) })
	if err != nil {
		return BreadCrumb{}, false, fmt.Errorf("read the breadcrumb: %w", err)
	}
	if !v.exists {
		return BreadCrumb{}, false, nil
	}
	b, err := ReadBreadCrumb(v.data)
	if b.Token == 0 {
		b.Token = v.stat.Czxid
	}
	return b, err == nil, nil
}

// ofTree changes the breadcrumb if that names the tree, and reports whether it does. change returns nil if nothing has to change.
func (c *Crumb) ofTree(ctx context.Context, tree json.RawMessage, change func(BreadCrumb, view) (any, error)) (names bool, err error) {
	err = retry(ctx, c.s.client, func() error {
		names, err = c.tryOfTree(ctx, tree, change)
		return err
	})
	return names && err == nil, err
}

func (c *Crumb) tryOfTree(ctx context.Context, tree json.RawMessage, change func(BreadCrumb, view) (any, error)) (bool, error) {
	look, err := c.s.names(ctx, c.paths) // first: it reveals later claims
	if err != nil {
		return false, err
	}
	v, err := c.s.get(ctx, c.paths.Crumb())
	if err != nil || !v.exists {
		return false, err
	}
	named, err := ReadBreadCrumb(v.data)
	if err != nil || len(tree) == 0 || !bytes.Equal(named.Tree, tree) {
		return false, nil // it names another tree
	}
	op, err := change(named, v)
	if err != nil || op == nil {
		return true, err
	}
	return true, c.s.change(ctx, look, named, v.stat.Version, op)
}
