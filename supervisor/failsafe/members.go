package failsafe

import (
	"cmp"
	"context"
	"slices"
	"time"

	"understudy/election"
)

// awayPatience is how many session timeouts a member that has gone is still counted on. Until then it can come back and take
// over as ever; from then on it would have to prove the death of whom it finds in the breadcrumb.
const awayPatience = 10

// Count keeps in the breadcrumb who stands for a service besides this node, until ctx ends: all of them have to promise, should
// ZooKeeper be gone. peers tells them, and each change of that, as election.Members.Watch does.
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
				g.cfg.Log.Debug("cannot read who else stands for the service", "service", service, "error", err)
				pause(watching, time.Second)
			}
		}
	}()
	defer func() { enough(); <-done }()
	session := g.cfg.Session
	a := attendance{gone: map[election.Peer]time.Time{}}
	look := time.NewTicker(session.Timeout())
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
		if all := a.count(now, awayPatience*session.Timeout()); first || !slices.Equal(all, listed) {
			first, listed = false, all
			// Once the deadline is ZooKeeper's own: a listed member relies on being asked for all that comes, and was not asked for
			// what is promised already.
			g.oncePlain(ctx, func() { claim.Roll.Enlist(all) })
		}
	}
}

// warnOfSilence says that somebody can never promise anything.
func (g *Gate) warnOfSilence(service string, peers []election.Peer) {
	for _, p := range peers {
		if p.Agent == "" || p.Machine == "" {
			g.cfg.Log.Warn("failsafe cannot work: a member has no fencing agent, or no machine id, so it cannot be asked", "service", service, "member", p.Node)
		}
	}
}

// attendance is who was there, and since when not.
type attendance struct {
	all  []election.Peer
	gone map[election.Peer]time.Time
}

// count is everybody who is there, or has not been gone for long. A node that came back with another machine or address replaces
// its former self.
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
