package election

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// keepHistory is how many activations are kept.
const keepHistory = 100

// History is the last activations of a service.
type History struct {
	s   *Session
	dir string
}

// Record adds an activation to the history, and returns the entry for Amend. Entries beyond the last 100 are dropped, and
// one that a former active left open is closed with the given reason.
func (h *History) Record(ctx context.Context, a Activation, former Reason) (string, error) {
	a.Node = h.s.cfg.Node.Node
	entry, err := call(ctx, h.s.client, func() (string, error) {
		return h.s.conn.Create(h.dir+"/n_", encode(a), zk.FlagSequence, h.s.acl)
	})
	if err != nil {
		return "", fmt.Errorf("record: %w", err)
	}
	names, err := h.s.children(ctx, h.dir)
	if err != nil {
		return entry, fmt.Errorf("read the history: %w", err)
	}
	slices.Sort(names)
	if i := slices.Index(names, entry[len(h.dir)+1:]); i > 0 {
		h.closeEntry(ctx, h.dir+"/"+names[i-1], a, former)
	}
	for len(names) > keepHistory {
		if err := h.s.delete(ctx, h.dir+"/"+names[0]); err != nil {
			return entry, fmt.Errorf("shorten the history: %w", err)
		}
		names = names[1:]
	}
	return entry, nil
}

// closeEntry ends an activation whose node could not do it any more.
func (h *History) closeEntry(ctx context.Context, path string, next Activation, why Reason) {
	v, err := h.s.read(ctx, path)
	if err != nil {
		return
	}
	old, err := decode[Activation](v.data)
	if err != nil || old.Node == "" || old.End != nil {
		return
	}
	old.End, old.Reason = &next.Start, why
	if err := h.s.set(ctx, path, encode(old), v.stat.Version); err != nil {
		h.s.log.Debug("cannot close the former activation in the history", "path", path, "error", err)
	}
}

// Amend rewrites an entry of the history.
func (h *History) Amend(ctx context.Context, entry string, a Activation) error {
	a.Node = h.s.cfg.Node.Node
	if err := h.s.set(ctx, entry, encode(a), -1); err != nil {
		return fmt.Errorf("amend the history: %w", err)
	}
	return nil
}

// Correct rewrites an entry that this node wrote in a former session. An entry that belongs to another activation by
// now stays: ZooKeeper may have lost its data meanwhile.
func (h *History) Correct(ctx context.Context, entry string, a Activation) error {
	a.Node = h.s.cfg.Node.Node
	return wrap("correct the history", retry(ctx, h.s.client, func() error {
		v, err := h.s.read(ctx, entry)
		if err != nil {
			return err
		}
		old, unread := decode[Activation](v.data)
		if !v.exists || unread != nil || old.Token != a.Token || old.Node != a.Node {
			return nil
		}
		return h.s.set(ctx, entry, encode(a), v.stat.Version)
	}))
}

// Past reads the newest activations, the newest last.
func (h *History) Past(ctx context.Context, n int) ([]Activation, error) {
	entries, err := h.s.children(ctx, h.dir)
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	slices.Sort(entries)
	entries = entries[max(len(entries)-n, 0):]
	past := make([]Activation, 0, len(entries))
	for _, name := range entries {
		v, err := h.s.read(ctx, h.dir+"/"+name)
		if err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
		if a, err := decode[Activation](v.data); err == nil {
			past = append(past, a)
		}
	}
	return past, nil
}
