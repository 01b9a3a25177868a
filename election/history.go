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
// one that a previous active left open is closed with the given reason and ending. lost is that one, if its node was fenced, or was dead
// when its lock was given back: nobody handed over. It may be called again if the answer was lost: then the earlier entry is dropped.
func (h *History) Record(ctx context.Context, a Activation, previous Reason, end Ending) (entry string, lost *Activation, err error) {
	a.Node = h.s.cfg.Node.Node
	entry, err = call(ctx, h.s.client, func() (string, error) {
		return h.s.conn.Create(h.dir+"/n_", encode(a), zk.FlagSequence, h.s.acl)
	})
	if err != nil {
		return "", nil, fmt.Errorf("record: %w", err)
	}
	names, err := h.s.children(ctx, h.dir)
	if err != nil {
		return entry, nil, fmt.Errorf("read the history: %w", err)
	}
	slices.Sort(names)
	for i := slices.Index(names, entry[len(h.dir)+1:]); i > 0; i-- {
		path := h.dir + "/" + names[i-1]
		v, err := h.s.get(ctx, path)
		if err != nil {
			break
		}
		old, unread := decode[Activation](v.data)
		if unread == nil && old.Token == a.Token && old.Node == a.Node {
			if err := h.s.delete(ctx, path); err != nil {
				return entry, nil, fmt.Errorf("drop the earlier entry: %w", err)
			}
			names = slices.Delete(names, i-1, i)
			continue
		}
		if unread == nil && old.Node != "" && old.End == nil {
			lost = h.closeEntry(ctx, path, old, v.stat.Version, a, previous, end)
		}
		break
	}
	for len(names) > keepHistory {
		if err := h.s.delete(ctx, h.dir+"/"+names[0]); err != nil {
			return entry, lost, fmt.Errorf("shorten the history: %w", err)
		}
		names = names[1:]
	}
	return entry, lost, nil
}

// closeEntry ends an activation whose node could not do it any more, or has not done it yet: then it returns nil.
func (h *History) closeEntry(ctx context.Context, path string, old Activation, version int32, next Activation, why Reason, end Ending) (lost *Activation) {
	dead := next.Fenced.Fenced()
	if v, err := h.s.get(ctx, h.dir); err == nil {
		if n, err := decode[note](v.data); err == nil && n.Token == old.Token {
			end, dead = n.Ending, true
		}
	}
	old.End = &next.Start
	if end.known() {
		old.End = end.Max
	}
	old.EndMin, old.EndMax, old.Reason = end.Min, end.Max, why
	if err := h.s.set(ctx, path, encode(old), version); err != nil {
		h.s.log.Debug("cannot close the previous activation in the history", "path", path, "error", err)
	}
	if !dead {
		return nil
	}
	return &old
}

// Amend rewrites an entry of the history.
func (h *History) Amend(ctx context.Context, entry string, a Activation) error {
	a.Node = h.s.cfg.Node.Node
	return wrap("amend the history", h.s.set(ctx, entry, encode(a), -1))
}

// Correct rewrites an entry that this node wrote in a previous session. An entry that belongs to another activation by
// now stays: ZooKeeper may have lost its data meanwhile.
func (h *History) Correct(ctx context.Context, entry string, a Activation) error {
	a.Node = h.s.cfg.Node.Node
	return wrap("correct the history", retry(ctx, h.s.client, func() error {
		v, err := h.s.get(ctx, entry)
		if err != nil {
			return err
		}
		old, unread := decode[Activation](v.data)
		if !v.exists || unread != nil || old.Token != a.Token || old.Node != a.Node {
			return nil
		}
		// A node that slept proves a death late. The bounds of the node that took over are closer then.
		if bounds := (Ending{old.EndMin, old.EndMax}); a.End != nil && bounds.Max != nil && a.End.After(*bounds.Max) {
			a.EndMin, a.EndMax = bounds.Min, bounds.Max
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
		v, err := h.s.get(ctx, h.dir+"/"+name)
		if err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
		if a, err := decode[Activation](v.data); err == nil {
			past = append(past, a)
		}
	}
	return past, nil
}
