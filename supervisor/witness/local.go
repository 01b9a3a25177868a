package witness

import (
	"context"
	"os"

	"understudy/fencing"
	"understudy/supervisor/child"
)

// KillLocal kills a child on this machine, whichever supervisor made it, and states what is known of it then.
func KillLocal(ctx context.Context, t fencing.Target) fencing.Statement {
	s := fencing.Statement{Service: t.Service, Token: t.Token}
	host, err := child.Identity()
	if err != nil {
		s.Why = err.Error()
		return s
	}
	s.Machine, s.Boot = host.Machine, host.Boot
	// Copied machines share an id: that this one is the target's, in a later boot, is believed only if the host name agrees.
	if name, err := os.Hostname(); err == nil && name == t.Host {
		s.Node = t.Node
	}
	w := At{Node: s.Node, Host: host, End: KillTree, Look: Outlasted}
	verdict, by, err := w.Prove(ctx, t.Node, t.Machine, t.Boot, t.Tree, t.Seen)
	switch {
	case err == nil && verdict == fencing.Dead:
		s.Dead, s.How = true, by
	case err != nil:
		s.Alive, s.Why = verdict == fencing.Alive, err.Error()
	default:
		s.Why = "this machine knows nothing about it"
	}
	return s
}
