package election

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
		if unread == nil && old.Token > a.Token { // a short term's entry comes late if its supervisor slept
			continue
		}
		lost = h.closeEntry(ctx, path, v, a, previous, end)
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

// late reports whether an end, as its own node has it, comes after the next activation has proved it and started.
func late(end time.Time, next Activation) bool {
	return next.Started != nil && end.After(*next.Started) && next.Fenced.Fenced() && !next.Fenced.Confirmed()
}

// foreign reports whether an entry was ended by an activation after the next
// one, whose own entry comes late: with what it knew of that one's end.
func foreign(a, next Activation) bool {
	word := a.Reason.Word()
	return (word == Lost || word == SupervisorLost) && a.End.After(next.Start)
}

// closeEntry ends an activation whose node could not do it any more, or has not done it yet: then it returns nil.
func (h *History) closeEntry(ctx context.Context, path string, v view, next Activation, why Reason, end Ending) (lost *Activation) {
	for range mostChanges {
		old, unread := decode[Activation](v.data)
		if unread != nil || old.Node == "" || old.End != nil && !late(*old.End, next) && !foreign(old, next) {
			return nil
		}
		bounds, dead := end.beside(old, next), next.Fenced.Fenced()
		if noted, there := h.noted(ctx, old.Token); there {
			bounds, dead = noted, true
		}
		bounds = bounds.since(old.DownSince)
		old.End = &next.Start
		if bounds.known() {
			old.End = bounds.Max
		}
		old.EndMin, old.EndMax, old.Reason = bounds.Min, bounds.Max, why
		err := h.s.set(ctx, path, encode(old), v.stat.Version)
		if errors.Is(err, zk.ErrBadVersion) { // its own node has just written the end, maybe a late one
			if v, err = h.s.get(ctx, path); err == nil {
				continue
			}
		}
		if err != nil {
			h.s.log.Debug("cannot close the previous activation in the history", "path", path, "error", err)
		}
		if !dead {
			return nil
		}
		return &old
	}
	return nil
}

// noted returns what the process noted that gave the lock of an activation back in place of its supervisor.
func (h *History) noted(ctx context.Context, token int64) (Ending, bool) {
	v, err := h.s.get(ctx, h.dir)
	if err != nil {
		return Ending{}, false
	}
	n, err := decode[note](v.data)
	return n.Ending, err == nil && n.Token == token
}

// Amend rewrites an entry of the history.
func (h *History) Amend(ctx context.Context, entry string, a Activation) error {
	a.Node = h.s.cfg.Node.Node
	return wrap("amend the history", h.s.set(ctx, entry, encode(a), -1))
}

// Correct writes the end of an activation into its entry. An entry that belongs to another activation by now stays: ZooKeeper may have
// lost its data meanwhile. So does one whose death was proved before the next activation started: a node that slept proves it late. If only
// an operator confirmed it, or deleted lock and breadcrumb, both may have run.
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
		now := a
		if a.End != nil {
			next, err := h.after(ctx, entry, a.Token)
			if err != nil {
				return err
			}
			bounds, there := h.noted(ctx, a.Token)
			if !there {
				bounds = Ending{Min: old.EndMin, Max: old.EndMax}
			}
			if late(*a.End, next) || bounds.Max != nil && next.Started != nil && a.End.After(*next.Started) && !next.Fenced.Confirmed() {
				return nil
			}
			if bounds.Max != nil && a.End.After(*bounds.Max) { // the bounds are closer
				now.EndMin, now.EndMax, now.End = bounds.Min, bounds.Max, bounds.Max
			}
		}
		return h.s.set(ctx, entry, encode(now), v.stat.Version)
	}))
}

// after returns the activation after that of an entry; the zero one if there is none, or none that can be read.
func (h *History) after(ctx context.Context, entry string, token int64) (Activation, error) {
	names, err := h.s.children(ctx, h.dir)
	if err != nil {
		return Activation{}, err
	}
	slices.Sort(names)
	for _, name := range names {
		if path := h.dir + "/" + name; path > entry {
			v, err := h.s.get(ctx, path)
			if err != nil {
				return Activation{}, err
			}
			if next, unread := decode[Activation](v.data); unread == nil && next.Token > token {
				return next, nil
			}
		}
	}
	return Activation{}, nil
}

// Past reads the newest activations, in the order of their tokens.
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
	slices.SortFunc(past, func(a, b Activation) int { return cmp.Compare(a.Token, b.Token) })
	return past, nil
}
