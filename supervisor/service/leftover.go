package service

import (
	"context"
	"encoding/json"
	"time"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/service/role"
)

const (
	endFirst    = 200 * time.Millisecond // for the first attempt: the other nodes must read soon that a delay proves nothing
	endPatience = time.Second            // for each other
	endAgain    = 10 * time.Second       // the longest pause between two
)

// testify says that processes of a tree are alive: in the breadcrumb, if that names the tree, and in this node's status.
func (t *stay) testify(ctx context.Context, cand *election.Candidate, tree json.RawMessage, err error) {
	t.v.local.undead.see(err)
	t.v.view.say()
	t.v.local.crumbs.alive(ctx, cand, tree, err)
}

// remains are the processes of a service that a former session or supervisor has left here.
type remains struct {
	*stay
	cand  *election.Candidate // nil: there was nothing to write yet
	tree  json.RawMessage     // that the breadcrumb names, or did
	words string
}

// endAll kills the programs of a former session, or of a former supervisor, and waits until they are proved dead. Until then this node
// is no candidate for this service; other services go on. session ends with the session, serving with this stay.
func (r *remains) endAll(session, serving context.Context) role.Event {
	v := r.v
	patience := endFirst
	for wait := time.Second; ; wait = min(2*wait, endAgain) {
		left, err := r.end(session, patience)
		if patience = endPatience; !left {
			r.settle(session)
			return role.Event{Kind: role.Proved}
		}
		if session.Err() == nil {
			r.tell(session, err)
		}
		if !r.pause(session, serving, wait) {
			if v.local.undead.of(r.s.Epoch) {
				return role.Event{Kind: role.Unproved}
			}
			return role.Event{Kind: role.StayOver} // this session has nothing of the service
		}
	}
}

// pause waits until the next attempt. For a removed service it never gives up: its namesake begins after it.
func (r *remains) pause(session, serving context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	leaves := serving.Done()
	for {
		select {
		case <-timer.C:
			return true
		case <-leaves:
			if handing(serving) && r.v.local.undead.tree == nil { // the next image looks for itself
				return false
			}
			leaves = nil
		case <-session.Done():
			return false
		}
	}
}

// end kills, and reports whether processes are left, and why they are not known to be dead.
func (r *remains) end(ctx context.Context, patience time.Duration) (left bool, err error) {
	v := r.v
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if u := &v.local.undead; u.tree != nil {
		r.tree = idOf(u.tree)
		if err := u.tree.End(bounded); err != nil {
			return true, err
		}
		u.proved()
		v.engagement.end()
		if err := v.node.Guard().Finish(u.epoch); err != nil {
			v.log.Debug("a former lease is still held", "error", err) // by another service's tree
		}
	}
	l := v.node.Guard().Leftover(bounded, v.name, r.tree)
	if r.tree == nil && (l != nil || v.node.Guard().Kind() != child.KindCgroup) { // with cgroups, the guard sees all processes without it
		if tree := r.named(ctx); tree != nil {
			again, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			if of := v.node.Guard().Leftover(again, v.name, tree); of != nil && of.Named {
				l, r.tree = of, tree
			}
		}
	}
	if l == nil {
		return false, nil
	}
	return true, &child.AliveError{Leftover: *l, Err: child.ErrUnproved}
}

// named is the tree that the breadcrumb names.
func (r *remains) named(ctx context.Context) json.RawMessage {
	ctx, cancel := context.WithTimeout(ctx, proofPatience)
	defer cancel()
	if !r.stand(ctx) {
		return nil
	}
	b, ok, err := r.cand.Crumb.Named(ctx)
	if err != nil || !ok {
		return nil // fencing looks at it
	}
	return b.Tree
}

func (r *remains) stand(ctx context.Context) bool {
	if r.cand == nil {
		cand, _, err := r.s.NewCandidate(ctx, r.v.name, r.v.conf.order())
		if err != nil {
			return false
		}
		r.cand = cand
	}
	return true
}

// tell reports the leftover processes in log, status and breadcrumb.
func (r *remains) tell(ctx context.Context, err error) {
	v := r.v
	if v.local.undead.tree != nil {
		v.handover.offer(Stuck)
	}
	if words := err.Error(); words != r.words {
		r.words = words
		v.log.Error("processes of a former child cannot be killed: this node is no candidate until they are dead, still trying",
			"error", err)
	}
	saying, cancel := context.WithTimeout(ctx, 2*sayPatience)
	defer cancel()
	if !r.stand(saying) {
		r.cand = nil
	}
	r.testify(ctx, r.cand, r.tree, err)
	if r.cand != nil {
		if err := r.cand.Members.Announce(saying, v.view.member()); err != nil {
			v.log.Debug("cannot announce", "error", err)
		}
	}
}

// settle runs the undos that are still due after the death, and ends the waiting of others.
func (r *remains) settle(ctx context.Context) {
	v := r.v
	v.local.undead.forget()
	if r.words == "" && r.tree == nil { // there was nothing, as a rule
		return
	}
	v.log.Info("the former child is dead now, with all its processes")
	v.unit.LoadDebts()
	v.unit.UndoAll(ctx)
	bounded, cancel := context.WithTimeout(ctx, proofPatience)
	defer cancel()
	if r.tree != nil && !v.unit.Owes() && ctx.Err() == nil && r.stand(bounded) {
		if removed, err := r.cand.Crumb.MarkDead(bounded, r.tree, v.local.crumbs.outlasted(r.tree)); !removed {
			v.log.Debug("cannot remove the breadcrumb of a dead child", "error", err)
		}
	}
}
