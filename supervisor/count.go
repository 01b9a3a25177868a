package supervisor

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

// count keeps in the breadcrumb who stands for the service besides this node, for as long as the term lasts: all of them have
// to promise, should ZooKeeper be gone.
func (v *service) count(ctx context.Context, t turn, claim *election.Claim) {
	told := make(chan []election.Peer)
	watching, enough := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for watching.Err() == nil {
			err := t.cand.Peers(watching, func(peers []election.Peer) {
				select {
				case told <- peers:
				case <-watching.Done():
				}
			})
			if err != nil && watching.Err() == nil {
				v.log.Debug("cannot read who else stands for the service", "service", v.name, "error", err)
				pause(watching, time.Second)
			}
		}
	}()
	defer func() { enough(); <-done }()
	a := attendance{gone: map[election.Peer]time.Time{}}
	look := time.NewTicker(t.sess.Timeout())
	defer look.Stop()
	listed, first := []election.Peer(nil), true
	var now []election.Peer
	for {
		select {
		case now = <-told:
			v.warnOfSilence(now)
		case <-look.C:
			if first {
				continue
			}
		case <-ctx.Done():
			return
		}
		if all := a.count(now, awayPatience*t.sess.Timeout()); first || !slices.Equal(all, listed) {
			first, listed = false, all
			t.hold.enlist(ctx, claim, all)
		}
	}
}

// warnOfSilence says that somebody can never promise anything.
func (v *service) warnOfSilence(peers []election.Peer) {
	for _, p := range peers {
		if p.Agent == "" || p.Machine == "" {
			v.log.Warn("failsafe cannot work: a member has no fencing agent, or no machine id, so it cannot be asked", "service", v.name, "member", p.Node)
		}
	}
}

// attendance is who was there, and since when not.
type attendance struct {
	all  []election.Peer
	gone map[election.Peer]time.Time
}

// count is everybody who is there, or has not been gone for long. A node that came back another one is that.
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
