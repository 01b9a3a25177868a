package election

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// keepHistory is how many activations are kept.
const keepHistory = 100

// Announce writes what this candidate says of itself. What a former session of this node left is replaced: the node's
// name is ours, nodes/<node> says so.
func (c *Candidate) Announce(ctx context.Context, m Member) error {
	me := c.s.cfg.Node
	m.Node, m.Host, m.Machine = me.Node, me.Host, me.Machine
	path := c.paths.Members() + "/" + me.Node
	if c.announced {
		err := c.s.set(ctx, path, encode(m), -1)
		if err == nil || !errors.Is(err, zk.ErrNoNode) {
			return wrap("announce", err)
		}
		c.announced = false // deleted by hand
	}
	err := c.own(ctx, path, encode(m))
	c.announced = err == nil
	return wrap("announce", err)
}

// Leave takes back all that this candidate has said of itself, as Retreat does.
func (c *Candidate) Leave(ctx context.Context) error {
	if err := c.Retreat(ctx); err != nil {
		return err
	}
	_, err := call(ctx, c.s, func() (struct{}, error) {
		return struct{}{}, c.s.conn.Delete(c.paths.Members()+"/"+c.s.cfg.Node.Node, -1)
	})
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	return wrap("leave", err)
}

// Retreat takes back that this candidate stands, and a lock that it may have without knowing. Nothing of it is alive.
func (c *Candidate) Retreat(ctx context.Context) error {
	if err := c.disown(ctx); err != nil {
		return err
	}
	return errors.Join(c.Withdraw(ctx), c.Prefer(ctx, 0))
}

// disown gives back a lock whose taking was not answered, if it is ours.
func (c *Candidate) disown(ctx context.Context) error {
	for c.unsure {
		lock, err := outcome(ctx, c.s, func() (view, error) {
			if err := c.s.sync(ctx, c.paths.Dir()); err != nil { // what was not answered may not be seen yet
				return view{}, err
			}
			return c.s.probe(ctx, c.paths.Lock())
		})
		if err != nil {
			return wrap("see whose the lock is", err)
		}
		if !lock.exists || lock.stat.EphemeralOwner != c.s.ID() {
			c.unsure = false
			return nil
		}
		claim, err := c.adopt(ctx, c.tried, lock)
		if errors.Is(err, ErrDeleted) && !c.unsure {
			return nil // it was given back
		}
		if err == nil && claim != nil {
			err = claim.Release(ctx)
			c.unsure = err != nil
		}
		if err != nil {
			return wrap("give a lock back", err)
		}
	}
	return nil
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Record adds an activation to the history, and returns the entry for Amend. Entries beyond the last 100 are dropped, and
// one that a former active left open is closed with the reason given.
func (c *Candidate) Record(ctx context.Context, a Activation, former Reason) (string, error) {
	a.Node = c.s.cfg.Node.Node
	entry, err := call(ctx, c.s, func() (string, error) {
		return c.s.conn.Create(c.paths.History()+"/n_", encode(a), zk.FlagSequence, c.s.acl)
	})
	if err != nil {
		return "", fmt.Errorf("record: %w", err)
	}
	names, err := c.s.children(ctx, c.paths.History())
	if err != nil {
		return entry, fmt.Errorf("read the history: %w", err)
	}
	slices.Sort(names)
	if i := slices.Index(names, entry[len(c.paths.History())+1:]); i > 0 {
		c.closeEntry(ctx, c.paths.History()+"/"+names[i-1], a, former)
	}
	for len(names) > keepHistory {
		old := c.paths.History() + "/" + names[0]
		_, err := call(ctx, c.s, func() (struct{}, error) { return struct{}{}, c.s.conn.Delete(old, -1) })
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return entry, fmt.Errorf("shorten the history: %w", err)
		}
		names = names[1:]
	}
	return entry, nil
}

// closeEntry ends an activation whose node did not live to do it.
func (c *Candidate) closeEntry(ctx context.Context, path string, next Activation, why Reason) {
	v, err := call(ctx, c.s, func() (view, error) {
		data, stat, err := c.s.conn.Get(path)
		if err != nil {
			return view{}, err
		}
		return view{data: data, stat: *stat}, nil
	})
	if err != nil {
		return
	}
	old, err := decode[Activation](v.data)
	if err != nil || old.Node == "" || old.End != nil {
		return
	}
	old.End, old.Reason = &next.Start, why
	if err := c.s.set(ctx, path, encode(old), v.stat.Version); err != nil {
		c.s.log.Debug("the former activation stays open in the history", "path", path, "error", err)
	}
}

// Amend rewrites an entry of the history.
func (c *Candidate) Amend(ctx context.Context, entry string, a Activation) error {
	a.Node = c.s.cfg.Node.Node
	if err := c.s.set(ctx, entry, encode(a), -1); err != nil {
		return fmt.Errorf("amend the history: %w", err)
	}
	return nil
}

// Correct rewrites an entry that this node wrote in a former session. An entry that is another activation's by now stays what it
// is: ZooKeeper may have lost its data meanwhile.
func (c *Candidate) Correct(ctx context.Context, entry string, a Activation) error {
	a.Node = c.s.cfg.Node.Node
	for again := (pacing{}); ; {
		v, err := c.s.read(ctx, entry)
		if err == nil {
			old, unread := decode[Activation](v.data)
			if !v.exists || unread != nil || old.Token != a.Token || old.Node != a.Node {
				return nil
			}
			err = c.s.set(ctx, entry, encode(a), v.stat.Version)
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			return nil
		case errors.Is(err, zk.ErrBadVersion), unknown(err):
		default:
			return fmt.Errorf("correct the history: %w", err)
		}
		if err := again.wait(ctx, c.s, err); err != nil {
			return err
		}
	}
}

// Past reads the newest activations, the newest last.
func (c *Candidate) Past(ctx context.Context, n int) ([]Activation, error) {
	entries, err := c.s.children(ctx, c.paths.History())
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	slices.Sort(entries)
	entries = entries[max(len(entries)-n, 0):]
	past := make([]Activation, 0, len(entries))
	for _, name := range entries {
		v, err := call(ctx, c.s, func() ([]byte, error) {
			data, _, err := c.s.conn.Get(c.paths.History() + "/" + name)
			return data, err
		})
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
		if a, err := decode[Activation](v); err == nil {
			past = append(past, a)
		}
	}
	return past, nil
}
