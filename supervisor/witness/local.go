package witness

import (
	"context"
	"errors"
	"os"

	"understudy/fencing"
	"understudy/supervisor/child/box"
)

// KillLocal kills a child on this machine, whichever supervisor made it, and states what is known of it then. pendingEffects is a Prover's.
func KillLocal(ctx context.Context, t fencing.Target, pendingEffects func(t fencing.Target, boot string) []string) fencing.Statement {
	s := fencing.Statement{Service: t.Service, Token: t.Token}
	host, err := box.Identity()
	if err != nil {
		s.Why = err.Error()
		return s
	}
	s.Machine, s.Boot = host.Machine, host.Boot
	// Copied machines share an id: that this one is the target's, in a later boot, is believed only if the host name agrees.
	if name, err := os.Hostname(); err == nil && name == t.Host {
		s.Node = t.Node
	}
	w := Prover{Node: s.Node, Host: host, End: KillTree, Look: Outlasted, PendingEffects: pendingEffects}
	verdict, by, err := w.Prove(ctx, t)
	switch {
	case err == nil && verdict == fencing.Dead:
		s.Dead, s.How, s.Undone = true, by, true
	case err != nil:
		s.Alive, s.Why = verdict == fencing.Alive, err.Error()
		if left, ok := errors.AsType[*fencing.NotUndone](err); ok {
			s.Left = left.Names
		}
	default:
		s.Why = "this machine knows nothing about it"
	}
	return s
}
