package failsafe

import (
	"context"
	"slices"
	"time"

	"understudy/election"
	"understudy/supervisor/wait"
)

// Count keeps the service's other candidates listed in the breadcrumb, until ctx ends: if ZooKeeper is gone, each of them has to
// promise. peers reports them, and each change, as election.Members.Watch does. One that has gone, and comes back while ZooKeeper is away,
// has to prove that the node in the breadcrumb runs nothing.
func (g *Gate) Count(ctx context.Context, service string, claim *election.Claim, peers func(context.Context, func([]election.Peer)) error) {
	var listed []election.Peer
	first := true
	for ctx.Err() == nil {
		err := peers(ctx, func(there []election.Peer) {
			g.warnOfSilence(service, there)
			if first || !slices.Equal(there, listed) {
				first, listed = false, there
				// Wait until the deadline is ZooKeeper's own: a listed member relies on being asked before each extension, and was not
				// asked about the one in force.
				g.oncePlain(ctx, func() { claim.Roll.Enlist(there) })
			}
		})
		if err != nil && ctx.Err() == nil {
			g.cfg.Log.Debug("cannot read which other nodes may take the service", "service", service, "error", err)
			wait.For(ctx, time.Second)
		}
	}
}

// warnOfSilence logs which members can never promise anything.
func (g *Gate) warnOfSilence(service string, peers []election.Peer) {
	for _, p := range peers {
		if p.Agent == "" || p.Machine == "" {
			g.cfg.Log.Warn("failsafe cannot work: a node has no fencing agent, or no machine id, so it cannot be asked",
				"service", service, "member", p.Node)
		}
	}
}
