// Package witness says what a machine knows about the death of a program that ran on it. Its own supervisor asks, and so do nodes that
// ask its agent, and an operator on the machine.
package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"understudy/fencing"
	"understudy/supervisor/child/box"
)

// patience is how long a proof may take.
const patience = 5 * time.Second

// Prover is a place from where a death may be proved: a node, on a machine, in a boot.
type Prover struct {
	Node string
	Host box.Host
	End  func(ctx context.Context, tree json.RawMessage) error // kills a tree of this machine; nil: its death is proved
	Look func(tree json.RawMessage, p fencing.ProcessID) error // looks for a process that was seen alive of it; nil: it is dead
	// Died tells whether all that the supervisor with this session started is proved dead; nil: that is known of none.
	Died func(session string) bool
	// PendingEffects names what is not undone of a target that was on this machine, which is in this boot now; nil: End has looked.
	PendingEffects func(t fencing.Target, boot string) []string
}

// Prove ends a previous active's child if it ran here, and tells whether it is dead: trees of other supervisors of this machine can be
// looked at and ended, and no process outlives a boot. P2: if a process of the tree was seen alive, it counts as dead only once that
// process is, whatever the tree's containment shows. And it counts as dead only once its effects are undone: some outlive a boot.
func (p Prover) Prove(ctx context.Context, t fencing.Target) (fencing.Liveness, string, error) {
	booted := t.Boot != p.Host.Boot
	switch {
	case t.Machine != p.Host.Machine, booted && (t.Machine == "" || t.Node != p.Node):
		return fencing.Unknown, "", nil
	case booted:
		return p.undone(t, "this machine has booted since")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := p.End(ctx, t.Tree)
	if err == nil {
		err = p.Look(t.Tree, t.Seen)
	}
	switch {
	case errors.As(err, new(*fencing.NotUndone)):
		return fencing.Alive, "", err
	case errors.Is(err, box.ErrElsewhere), errors.Is(err, box.ErrNotSeen):
		if p.Died != nil && p.Died(t.Session) && t.Seen.Pid == 0 { // its cgroup may be gone with its unit
			return p.undone(t, "all that its supervisor started is dead")
		}
		return fencing.Unknown, "", nil // the grace delay is for that
	case errors.Is(err, box.ErrMayLive):
		return fencing.Unknown, "", err
	case err != nil:
		return fencing.Alive, "", fmt.Errorf("end the tree of %s on this machine: %w", t.Node, err)
	}
	return p.undone(t, "its tree on this machine is dead")
}

// undone answers for a target without processes.
func (p Prover) undone(t fencing.Target, by string) (fencing.Liveness, string, error) {
	if p.PendingEffects != nil {
		if left := p.PendingEffects(t, p.Host.Boot); len(left) > 0 {
			return fencing.Alive, "", &fencing.NotUndone{Names: left}
		}
	}
	return fencing.Dead, by, nil
}

// KillTree ends a tree that another supervisor of this machine made. nil: its death is proved.
func KillTree(ctx context.Context, id json.RawMessage) error {
	var tree box.TreeID
	if err := json.Unmarshal(id, &tree); err != nil {
		return fmt.Errorf("read a tree's identity: %w", err)
	}
	return box.Unproved(tree, box.KillByID(ctx, tree))
}

// Outlasted looks for a process that was seen alive of such a tree. nil: it is dead, or none was seen.
func Outlasted(id json.RawMessage, p fencing.ProcessID) error {
	if p.Pid == 0 {
		return nil
	}
	var tree box.TreeID
	if err := json.Unmarshal(id, &tree); err != nil {
		return fmt.Errorf("read a tree's identity: %w", err)
	}
	return tree.Outlasted(p.Pid, p.Start)
}
