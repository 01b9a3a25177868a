package control

import (
	"context"
	"errors"

	"understudy/election"
)

// SharedCluster reaches a cluster for many, and for long: readings go over one connection, which is made when it is needed and given up
// when it fails. Orders that wait for their outcome have a connection each, so that nobody else waits for them.
type SharedCluster struct {
	cfg     election.Config
	mu      chan struct{} // capacity 1: held while cluster is used
	cluster *Cluster      // nil: not connected
}

// NewSharedCluster makes one, which is not connected yet. It is to be closed.
func NewSharedCluster(cfg election.Config) *SharedCluster {
	return &SharedCluster{cfg: cfg, mu: make(chan struct{}, 1)}
}

func (l *SharedCluster) with(ctx context.Context, use func(*Cluster) error) error {
	select {
	case l.mu <- struct{}{}:
		defer func() { <-l.mu }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.cluster == nil {
		c, err := Open(ctx, l.cfg)
		if err != nil {
			return err
		}
		l.cluster = c
	}
	err := use(l.cluster)
	if err != nil && !errors.Is(err, ErrUnknown) {
		l.cluster.Close()
		l.cluster = nil
	}
	return err
}

// alone is with over a connection of its own.
func (l *SharedCluster) alone(ctx context.Context, use func(*Cluster) error) error {
	c, err := Open(ctx, l.cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	return use(c)
}

// Status is Cluster.Status.
func (l *SharedCluster) Status(ctx context.Context, services ...string) (s Status, err error) {
	err = l.with(ctx, func(c *Cluster) error { s, err = c.Status(ctx, services...); return err })
	return s, err
}

// History is Cluster.History.
func (l *SharedCluster) History(ctx context.Context, services ...string) (list []HistoryEntry, err error) {
	err = l.with(ctx, func(c *Cluster) error { list, err = c.History(ctx, services...); return err })
	return list, err
}

// Pause is Cluster.Pause.
func (l *SharedCluster) Pause(ctx context.Context, service string, paused bool, by, why string) (changed bool, err error) {
	err = l.with(ctx, func(c *Cluster) error { changed, err = c.Pause(ctx, service, paused, by, why); return err })
	return changed, err
}

// Stop is Cluster.Stop.
func (l *SharedCluster) Stop(ctx context.Context, service string, stopped bool, by, why string) (changed bool, err error) {
	err = l.with(ctx, func(c *Cluster) error { changed, err = c.Stop(ctx, service, stopped, by, why); return err })
	return changed, err
}

// Switchover is Cluster.Switchover.
func (l *SharedCluster) Switchover(ctx context.Context, h SwitchoverRequest) (to string, err error) {
	err = l.alone(ctx, func(c *Cluster) error { to, err = c.Switchover(ctx, h); return err })
	return to, err
}

// Restart is Cluster.Restart.
func (l *SharedCluster) Restart(ctx context.Context, service, by string) error {
	return l.alone(ctx, func(c *Cluster) error { return c.Restart(ctx, service, by) })
}

// OrderCopy is Cluster.OrderCopy.
func (l *SharedCluster) OrderCopy(ctx context.Context, r CopyRequest) error {
	return l.alone(ctx, func(c *Cluster) error { return c.OrderCopy(ctx, r) })
}

// Reload is Cluster.Reload.
func (l *SharedCluster) Reload(ctx context.Context, service, by string) error {
	return l.alone(ctx, func(c *Cluster) error { return c.Reload(ctx, service, by) })
}

// Drain is Cluster.Drain.
func (l *SharedCluster) Drain(ctx context.Context, d Draining) (changed bool, leaving []Departure, err error) {
	err = l.alone(ctx, func(c *Cluster) error { changed, leaving, err = c.Drain(ctx, d); return err })
	return changed, leaving, err
}

// Undrain is Cluster.Undrain.
func (l *SharedCluster) Undrain(ctx context.Context, node, by string) (changed bool, err error) {
	err = l.alone(ctx, func(c *Cluster) error { changed, err = c.Undrain(ctx, node, by); return err })
	return changed, err
}

// Close gives the connection up. The other calls would make a new one.
func (l *SharedCluster) Close() {
	l.mu <- struct{}{}
	defer func() { <-l.mu }()
	if l.cluster != nil {
		l.cluster.Close()
		l.cluster = nil
	}
}
