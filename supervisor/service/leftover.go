package service

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"understudy/election"
	"understudy/supervisor/child/box"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
)

const (
	endFirst    = 200 * time.Millisecond // for the first attempt: the other nodes must read soon that a delay proves nothing
	endPatience = time.Second            // for each other
	endAgain    = 10 * time.Second       // the longest pause between two
)

// reportAlive says that processes of a tree are alive: in the breadcrumb, if that names the tree, and in this node's status.
func (v *Service) reportAlive(ctx context.Context, cand *election.Candidate, tree json.RawMessage, err error) {
	v.unprovedTree.noteAlive(err)
	v.view.announce()
	v.breadcrumb.noteAlive(ctx, cand, tree, err)
}

// leftovers are the processes of a service that a previous session or supervisor has left here.
type leftovers struct {
	v     *Service
	s     Session
	cand  *election.Candidate // nil: there was nothing to write yet
	tree  json.RawMessage     // that the breadcrumb names, or did
	words string
}

// endLeftovers kills the programs of a previous session, or of a previous supervisor, and waits until they are proved dead. Until then this
// node is no candidate for this service; other services go on. session ends with the session, serving with this stay.
func (o *leftovers) endLeftovers(session, serving context.Context) role.Event {
	v := o.v
	patience := endFirst
	for pause := time.Second; ; pause = min(2*pause, endAgain) {
		left, err := o.killLeftovers(session, patience)
		patience = endPatience
		if !left {
			o.settleLeftovers(session)
			return role.Event{Kind: role.Proved}
		}
		if session.Err() == nil {
			o.reportLeftovers(session, err)
		}
		if !o.pauseKilling(session, serving, pause) {
			if v.unprovedTree.tree != nil && v.unprovedTree.epoch == o.s.Epoch {
				return role.Event{Kind: role.Unproved}
			}
			return role.Event{Kind: role.StayOver} // this session has nothing of the service
		}
	}
}

// pauseKilling waits until the next attempt. For a removed service it never gives up: its namesake begins after it.
func (o *leftovers) pauseKilling(session, serving context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	leaves := serving.Done()
	for {
		select {
		case <-timer.C:
			return true
		case <-leaves:
			if handing(serving) && o.v.unprovedTree.tree == nil { // the next image looks for itself
				return false
			}
			leaves = nil
		case <-session.Done():
			return false
		}
	}
}

// killLeftovers tries once. It reports whether processes are left, and why they are not known to be dead.
func (o *leftovers) killLeftovers(ctx context.Context, patience time.Duration) (left bool, err error) {
	v := o.v
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if u := &v.unprovedTree; u.tree != nil {
		o.tree = idOf(u.tree)
		if err := u.end(bounded); err != nil {
			return true, err
		}
		u.tree.ReportUndone(false) // UndoOld undoes it
		u.tree, u.promoteTree = nil, nil
		v.disengage()
		if err := v.node.Guard().Finish(u.epoch); err != nil {
			v.log.Debug("a previous lease is still held", "error", err) // by another service's tree
		}
	}
	l := v.node.Guard().Leftover(bounded, v.name, o.tree)
	if o.tree == nil && (l != nil || v.node.Guard().Kind() != box.KindCgroup) { // with cgroups, the guard sees all processes without it
		if tree := o.treeInBreadcrumb(ctx); tree != nil {
			again, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			if of := v.node.Guard().Leftover(again, v.name, tree); of != nil && of.Named {
				l, o.tree = of, tree
			}
		}
	}
	if l == nil {
		return false, nil
	}
	return true, &box.AliveError{Leftover: *l, Err: box.ErrUnproved}
}

// treeInBreadcrumb is the tree that the breadcrumb names.
func (o *leftovers) treeInBreadcrumb(ctx context.Context) json.RawMessage {
	ctx, cancel := context.WithTimeout(ctx, proofPatience)
	defer cancel()
	if !o.findBreadcrumb(ctx) {
		return nil
	}
	b, ok, err := o.cand.Crumb.Named(ctx)
	if err != nil || !ok {
		return nil // fencing looks at it
	}
	return b.Tree
}

func (o *leftovers) findBreadcrumb(ctx context.Context) bool {
	if o.cand == nil {
		cand, _, err := o.s.NewCandidate(ctx, o.v.name, o.v.conf.order())
		if err != nil {
			return false
		}
		o.cand = cand
	}
	return true
}

// reportLeftovers reports the leftover processes in log, status and breadcrumb.
func (o *leftovers) reportLeftovers(ctx context.Context, err error) {
	v := o.v
	if v.unprovedTree.tree != nil {
		v.offer(Stuck)
	}
	if words := err.Error(); words != o.words {
		o.words = words
		v.log.Error("processes of a previous program cannot be killed: this node does not take the service until they are dead, "+
			"still trying", "error", err)
	}
	saying, cancel := context.WithTimeout(ctx, 2*writePatience)
	defer cancel()
	o.findBreadcrumb(saying)
	v.reportAlive(ctx, o.cand, o.tree, err)
	if o.cand != nil {
		if err := o.cand.Members.Announce(saying, v.view.member()); err != nil {
			v.log.Debug("cannot announce", "error", err)
		}
	}
}

// reportPending reports in status and breadcrumb what is not undone.
func (o *leftovers) reportPending(ctx context.Context) {
	v := o.v
	v.view.announce()
	saying, cancel := context.WithTimeout(ctx, 2*writePatience)
	defer cancel()
	if !o.findBreadcrumb(saying) {
		return
	}
	if b, ok, err := o.cand.Crumb.Named(saying); err == nil && ok && b.Node == v.node.Self.Node && b.Machine == v.node.Self.Machine {
		v.breadcrumb.noteNotUndone(saying, o.cand, b.Tree, v.unit.PendingEffects())
	}
	if err := o.cand.Members.Announce(saying, v.view.member()); err != nil {
		v.log.Debug("cannot announce", "error", err)
	}
}

// undo reports whether all is undone. Until then this node is no candidate for this service.
func (o *leftovers) undo(ctx context.Context) bool {
	v := o.v
	session, enough := linger(ctx, o.s.Leave, 0)
	defer enough()
	undo := func(ctx context.Context) bool {
		report := func() { o.reportPending(session) }
		undone := v.unit.UndoAll(ctx, unit.Leaving{}, report)
		return undone && v.unit.UndoAll(ctx, unit.Leaving{}, report) // again: it notes what could not be noted
	}
	done := undo(ctx)
	if !done && v.Removed() && !handing(ctx) { // its namesake begins after it
		done = undo(session)
	}
	return done
}

// settleLeftovers runs the undos that are still due after the death, and ends the waiting of others.
func (o *leftovers) settleLeftovers(ctx context.Context) {
	v := o.v
	v.unprovedTree.seen = ""
	if o.words == "" && o.tree == nil { // there was nothing, as a rule
		return
	}
	v.log.Info("the previous program is dead now, with all its processes")
	v.unit.LoadUndos()
	_ = v.unit.Undo(ctx) // UndoOld tries again
	bounded, cancel := context.WithTimeout(ctx, proofPatience)
	defer cancel()
	if o.tree != nil && !v.unit.HasPendingEffects() && ctx.Err() == nil && o.findBreadcrumb(bounded) {
		if removed, err := o.cand.Crumb.MarkDead(bounded, o.tree, v.breadcrumb.outlasted(o.tree)); !removed {
			v.log.Debug("cannot delete the record of a dead program", "error", err)
		}
	}
}

// noteAlive notes live processes.
func (u *unprovedTree) noteAlive(err error) {
	u.seen = unprovedDeath(err)
	if l, ok := leftoverIn(err); ok {
		u.seen = unprovedDeath(errors.New(l.String()))
	}
}

// leftoverIn is the live process that an unproved death names, if it names one.
func leftoverIn(err error) (box.Leftover, bool) {
	if alive, ok := errors.AsType[*box.AliveError](err); ok {
		return alive.Leftover, true
	}
	return box.Leftover{}, false
}

// unprovedDeath says that a child may be alive although it should have ended.
func unprovedDeath(err error) string { return "not proved dead: " + err.Error() }

// mayOutlast reports whether the writer of a breadcrumb may have a lease by a promise of this node. Whether a delay proves anything to this
// one is another matter: its lock may go, and another node may be the one to take it. What this node's own supervisors have left is known
// here, whatever others have promised to them.
func (v *Service) mayOutlast(of *election.BreadCrumb) bool {
	self := v.node.Self
	if of.Node == self.Node && of.Machine == self.Machine {
		return false
	}
	inherited, known := v.node.Promises.Inherited(time.Duration(of.LeaseMs) * time.Millisecond)
	if !known {
		return v.view.agent != "" // else nobody has ever promised anything here
	}
	return max(inherited, v.node.Promises.Bound(v.name)) > v.node.Machine.Now()
}
