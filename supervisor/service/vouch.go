package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/child"
)

// Witness is a place from where a death may be proved: a node, on a machine, in a boot.
type Witness struct {
	Node string
	Host child.Host
	End  func(ctx context.Context, tree json.RawMessage) error // kills a tree of this machine; nil: its death is proved
	Look func(tree json.RawMessage, p fencing.Process) error   // looks for a process that was seen alive of it; nil: it is dead
}

// seenOf is the process that a breadcrumb tells of.
func seenOf(l election.Leftover) fencing.Process { return fencing.Process{Pid: l.Pid, Start: l.Start} }

// Vouch tells what is known here of a former active's child: the process tree of an earlier or another supervisor of this
// machine can be looked at, and ended; and nothing outlives a boot. What was seen alive of it is dead only when that process is, whatever the tree's containment shows: P2.
func (w Witness) Vouch(ctx context.Context, node, machine, boot string, tree json.RawMessage, p fencing.Process) (fencing.Verdict, string, error) {
	if boot != w.Host.Boot {
		if machine != "" && machine == w.Host.Machine && node == w.Node {
			return fencing.Dead, "this machine has booted since", nil
		}
		return fencing.Unknown, "", nil
	}
	if machine != w.Host.Machine {
		return fencing.Unknown, "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, proofPatience)
	defer cancel()
	err := w.End(ctx, tree)
	if err == nil {
		err = w.Look(tree, p)
	}
	switch {
	case errors.Is(err, child.ErrElsewhere), errors.Is(err, child.ErrNotSeen):
		return fencing.Unknown, "", nil // the grace delay is for that
	case errors.Is(err, child.ErrMayLive):
		return fencing.Unknown, "", err
	case err != nil:
		return fencing.Alive, "", fmt.Errorf("end the tree of %s on this machine: %w", node, err)
	}
	return fencing.Dead, "its tree on this machine is dead", nil
}

func (v *Service) witness() Witness {
	self := v.node.Self
	return Witness{
		Node: self.Node, Host: child.Host{Machine: self.Machine, Boot: self.Boot}, End: v.node.Machine.KillTree, Look: v.node.Machine.Outlasted,
	}
}
