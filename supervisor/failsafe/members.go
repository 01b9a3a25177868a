package failsafe

import (
	"cmp"
	"context"
	"slices"
	"time"

	"understudy/election"
	"understudy/supervisor/wait"
)

// awayPatience is for how many leases a member still counts that has gone. Until then it can come back and take over as
// usual; later it has to prove that the node in the breadcrumb runs nothing.
const awayPatience = 20

// Count keeps the service's other candidates listed in the breadcrumb, until ctx ends: if ZooKeeper is gone, each of them has to
// promise. peers reports them, and each change, as election.Members.Watch does.
func (g *Gate) Count(ctx context.Context, service string, claim *election.Claim, peers func(context.Context, func([]election.Peer)) error) {
	told := make(chan []election.Peer)
	watching, enough := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for watching.Err() == nil {
			err := peers(watching, func(there []election.Peer) {
				select {
				case told <- there:
				case <-watching.Done():
				}
			})
			if err != nil && watching.Err() == nil {
				g.cfg.Log.Debug("cannot read which other nodes may take the service", "service", service, "error", err)
				wait.For(watching, time.Second)
			}
		}
	}()
	defer func() { enough(); <-done }()
	session := g.cfg.Session
	a := attendance{gone: map[election.Peer]time.Time{}}
	look := time.NewTicker(2 * session.LeaseLength())
	defer look.Stop()
	listed, first := []election.Peer(nil), true
	var now []election.Peer
	for {
		select {
		case now = <-told:
			g.warnOfSilence(service, now)
		case <-look.C:
			if first {
				continue
			}
		case <-ctx.Done():
			return
		}
		if all := a.count(now, awayPatience*session.LeaseLength()); first || !slices.Equal(all, listed) {
			first, listed = false, all
			// Wait until the deadline is ZooKeeper's own: a listed member relies on being asked before each extension, and was not
			// asked about the one in force.
			g.oncePlain(ctx, func() { claim.Roll.Enlist(all) })
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

// attendance is which members were there, and since when they are not.
type attendance struct {
	all  []election.Peer
	gone map[election.Peer]time.Time
}

// count returns the members that are there, or went not long ago. A node that came back with another machine or address replaces its
// previous self.
func (a *attendance) count(now []election.Peer, patience time.Duration) []election.Peer {
	all := slices.Clone(now)
	for _, p := range a.all {
		if slices.ContainsFunc(now, func(q election.Peer) bool { return q.Node == p.Node }) {
			delete(a.gone, p)
			continue
		}
		if a.gone[p].IsZero() {
			a.gone[p] = time.Now()
		}
		if time.Since(a.gone[p]) < patience {
			all = append(all, p)
		} else {
			delete(a.gone, p)
		}
	}
	slices.SortFunc(all, func(p, q election.Peer) int { return cmp.Compare(p.Node, q.Node) })
	a.all = all
	return slices.Clone(all)
}
