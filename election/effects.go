package election

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// Effects are what a term did beside processes, such as an address or a mount: it outlives them until it is undone.
type Effects struct {
	Names  []string    `json:"effects,omitempty"`         // all that there may be; written before the first of them
	UndoMs int64       `json:"undo_timeout_ms,omitempty"` // how long it may take to undo all
	Left   EffectsLeft `json:"effects_left,omitempty"`    // those that are known not to be undone
	// NeedProof are processes whose config says that no delay is a proof.
	NeedProof EffectsLeft `json:"needs_proof,omitempty"`
	// Survive are those that another boot of the machine does not undo. They are among NeedProof, for readers that do not know them.
	Survive EffectsLeft `json:"survives_boot,omitempty"`
	Look    Looks       `json:"effects_look,omitempty"` // where to look whether they are left
}

// Look tells an operator where to look whether an effect is left.
type Look struct {
	Name    string `json:"name"`
	Mount   string `json:"mount,omitempty"`   // the directory
	Address string `json:"address,omitempty"` // the IP address
	Undo    string `json:"undo,omitempty"`    // what undoes it, if it is neither
}

// Looks are those of a term.
type Looks []Look

// UnmarshalJSON accepts any value: they are words for an operator, and no proof rests on them.
func (l *Looks) UnmarshalJSON(data []byte) error {
	var all []Look
	if json.Unmarshal(data, &all) != nil {
		all = nil
	}
	for i, one := range all {
		all[i] = Look{Line(one.Name), Line(one.Mount), Line(one.Address), Line(one.Undo)}
	}
	*l = all
	return nil
}

// To is where to look for what an effect has left.
func (l Looks) To(name string) Look {
	if i := slices.IndexFunc(l, func(one Look) bool { return one.Name == name }); i >= 0 {
		return l[i]
	}
	return Look{Name: name}
}

// EffectsLeft names effects that are known not to be undone, although nothing of the tree need be alive. From then on no delay is a proof:
// P5.
type EffectsLeft []string

// UnmarshalJSON accepts any value: in any form it says that an effect is left.
func (l *EffectsLeft) UnmarshalJSON(data []byte) error {
	var names []string
	if err := json.Unmarshal(data, &names); err != nil || len(names) == 0 {
		names = []string{"unknown"}
	}
	eachLine(names)
	*l = names
	return nil
}

// Undoing is how long it may take to undo all effects.
func (e Effects) Undoing() time.Duration { return time.Duration(e.UndoMs) * time.Millisecond }

// Lists reports whether it lists the same effects, with the same time to undo them.
func (e Effects) Lists(other Effects) bool {
	return e.UndoMs == other.UndoMs && slices.Equal(e.Names, other.Names) && slices.Equal(e.NeedProof, other.NeedProof) &&
		slices.Equal(e.Survive, other.Survive) && slices.Equal(e.Look, other.Look)
}

// ListEffects makes the breadcrumb, if it names this tree, list the effects that the next run may have. It reports whether the breadcrumb
// does so now.
func (c *Crumb) ListEffects(ctx context.Context, tree json.RawMessage, e Effects) (bool, error) {
	said, err := c.ofTree(ctx, tree, func(named BreadCrumb, v view) (any, error) {
		if named.Lists(e) {
			return nil, nil
		}
		data := merge(v.data, e, "effects", "undo_timeout_ms", "needs_proof", "survives_boot", "effects_look")
		return &zk.SetDataRequest{Path: c.paths.Crumb(), Data: data, Version: v.stat.Version}, nil
	})
	return said, wrap("list effects in the breadcrumb", err)
}

// NotUndone notes in the breadcrumb, if it names this tree, which effects are not undone. It reports whether the breadcrumb says so now.
// Like NoteLeftover, it needs no lock.
func (c *Crumb) NotUndone(ctx context.Context, tree json.RawMessage, names []string) (bool, error) {
	said, err := c.ofTree(ctx, tree, func(named BreadCrumb, v view) (any, error) {
		if slices.Equal(named.Left, names) {
			return nil, nil
		}
		return &zk.SetDataRequest{Path: c.paths.Crumb(), Data: leaveEffects(v.data, names), Version: v.stat.Version}, nil
	})
	return said, wrap("note in the breadcrumb that effects are not undone", err)
}

// Union is all effects that may be left.
func (e Effects) Union() []string {
	all := slices.Clone([]string(e.Left))
	for _, name := range slices.Concat(e.Names, e.Survive) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// leaveEffects is a breadcrumb's data which says that effects are left.
func leaveEffects(data []byte, names []string) []byte {
	return merge(data, map[string]EffectsLeft{"effects_left": names})
}
