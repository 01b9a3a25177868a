package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/child"
	"understudy/supervisor/service/role"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
	"understudy/supervisor/witness"
)

const (
	buryFirst    = 200 * time.Millisecond // for the first attempt: others are to hear soon that a delay proves nothing
	buryPatience = time.Second            // for each other
	buryAgain    = 10 * time.Second       // the longest pause between two
	sayPatience  = time.Second            // for ZooKeeper to take what is said of it
)

// errLeftover says that a delay proves nothing.
var errLeftover = errors.New("its breadcrumb says that something of its child is alive: only a proof of its death counts, no delay")

func leftoverError(p *election.BreadCrumb) error {
	l := p.Leftover
	return fmt.Errorf("%w (%v, says %s)", errLeftover, child.Leftover{Tree: "its tree", Pid: l.Pid, Program: l.Program, State: l.State, Tracer: l.Tracer}, l.By)
}

// errBeside says that nothing may be started here, whoever was active last.
var errBeside = errors.New("something that a former supervisor of this machine has left of the service is alive")

// alone is the last look at this machine: another supervisor of it may have gone since the service stands here, and somebody
// have been active after that. P1.
func (t *term) alone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, buryFirst)
	defer cancel()
	if l := t.v.node.Guard().Leftover(ctx, t.v.name, nil); l != nil {
		return fmt.Errorf("%w: %v", errBeside, l)
	}
	return nil
}

// idOf is what a breadcrumb says of a tree.
func idOf(tree unit.Tree) json.RawMessage {
	id, err := tree.ID()
	if err != nil {
		return nil
	}
	return id
}

// testify says in the breadcrumb, if it names the tree, and to who looks at this node, that something of it is alive. P5: should the
// session end before the tree does, no delay makes it dead.
func (v *Service) testify(ctx context.Context, cand *election.Candidate, tree json.RawMessage, err error) {
	v.undead.seen = unprovedDeath(err)
	if l, ok := seen(err); ok {
		v.undead.seen = unprovedDeath(errors.New(l.String()))
	}
	v.say()
	v.record(ctx, cand, tree, err)
}

// seen is what of a tree is seen that is not proved dead.
func seen(err error) (child.Leftover, bool) {
	if alive, ok := errors.AsType[*child.AliveError](err); ok {
		return alive.Leftover, true
	}
	return child.Leftover{}, false
}

// seenAlive tells whether fencing was refused since somebody saw the child alive, here or on its machine.
func seenAlive(err error) bool {
	return errors.Is(err, fencing.ErrRefused) && (errors.Is(err, fencing.ErrAlive) || errors.Is(err, child.ErrUnproved))
}

// record says it in the breadcrumb.
func (v *Service) record(ctx context.Context, cand *election.Candidate, tree json.RawMessage, err error) {
	if cand == nil || len(tree) == 0 {
		return
	}
	l, _ := seen(err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayPatience)
	defer cancel()
	_, err = cand.Crumb.Remains(ctx, tree, election.Leftover{
		Pid: l.Pid, Start: l.Start, Program: l.Program, State: l.State, Tracer: l.Tracer, Since: time.Now().UTC(),
	})
	if err != nil {
		v.log.Warn("cannot say in the breadcrumb that something of the child is alive: another node may take a delay for a proof",
			"service", v.name, "error", err)
	}
}

// remains is what a former session, or a supervisor that is no more, has left of a service here.
type remains struct {
	*stay
	cand  *election.Candidate // nil: there was nothing to be said yet
	tree  json.RawMessage     // that the breadcrumb names, or did
	words string
}

// bury waits until nothing is alive on this machine of what ran here in a former session, be it of a supervisor that is no more. As
// long as there is, this service does not stand here, and all others do. session ends with the session, serving with this stay.
func (r *remains) bury(session, serving context.Context) role.Event {
	v := r.v
	patience := buryFirst
	for wait := time.Second; ; wait = min(2*wait, buryAgain) {
		left, err := r.end(session, patience)
		if patience = buryPatience; !left {
			r.settle(session)
			return role.Event{Kind: role.Proved}
		}
		if session.Err() == nil {
			r.tell(session, err)
		}
		if !r.pause(session, serving, wait) {
			if v.undead.tree != nil && v.undead.epoch == r.s.Epoch {
				return role.Event{Kind: role.Unproved}
			}
			return role.Event{Kind: role.StayOver} // this session holds nothing of it
		}
	}
}

// pause waits until the next attempt. A removed service is waited for to the end: its namesake begins after it.
func (r *remains) pause(session, serving context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	leaves := serving.Done()
	for {
		select {
		case <-timer.C:
			return true
		case <-leaves:
			if handing(serving) && r.v.undead.tree == nil { // the next image looks for itself
				return false
			}
			leaves = nil
		case <-session.Done():
			return false
		}
	}
}

// end kills, and tells whether something is left, and why that is not known to be dead.
func (r *remains) end(ctx context.Context, patience time.Duration) (left bool, err error) {
	v := r.v
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if v.undead.tree != nil {
		r.tree = idOf(v.undead.tree)
		if err := v.undead.tree.End(bounded); err != nil {
			return true, err
		}
		v.undead.tree = nil
		v.disengage()
		if err := v.node.Guard().Finish(v.undead.epoch); err != nil {
			v.log.Debug("a former lease is still held", "service", v.name, "error", err) // by another service's tree
		}
	}
	l := v.node.Guard().Leftover(bounded, v.name, r.tree)
	if r.tree == nil && (l != nil || v.node.Guard().Kind() != child.KindCgroup) { // with cgroups, all that is left is seen without it
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

// tell says what is left, wherever somebody looks.
func (r *remains) tell(ctx context.Context, err error) {
	v := r.v
	if v.undead.tree != nil {
		v.stance.Store(stuck)
	}
	if words := err.Error(); words != r.words {
		r.words = words
		v.log.Error("something of a former child cannot be killed: the service does not stand here until it is dead, trying again for ever",
			"service", v.name, "error", err)
	}
	saying, cancel := context.WithTimeout(ctx, 2*sayPatience)
	defer cancel()
	if !r.stand(saying) {
		r.cand = nil
	}
	v.testify(ctx, r.cand, r.tree, err)
	if r.cand != nil {
		if err := r.cand.Members.Announce(saying, v.member()); err != nil {
			v.log.Debug("cannot announce", "service", v.name, "error", err)
		}
	}
}

// settle undoes what is still to be undone of what is dead now, and ends the waiting of others.
func (r *remains) settle(ctx context.Context) {
	v := r.v
	v.undead.seen = ""
	if r.words == "" && r.tree == nil { // there was nothing, as a rule
		return
	}
	v.log.Info("nothing of the former child is alive any more", "service", v.name)
	v.unit.LoadDebts()
	v.unit.UndoAll(ctx)
	bounded, cancel := context.WithTimeout(ctx, proofPatience)
	defer cancel()
	if r.tree != nil && !v.unit.Owes() && ctx.Err() == nil && r.stand(bounded) {
		if buried, err := r.cand.Crumb.MarkDead(bounded, r.tree, v.outlasted(r.tree)); !buried {
			v.log.Debug("no breadcrumb of what is dead now is removed", "service", v.name, "error", err)
		}
	}
}

// clearLeftover takes a breadcrumb away that says that something of a former session of this node is alive, once that is proved dead. It may
// have died unseen: while no supervisor ran here, or with the machine. P6: without that only this node could ever be active again, or
// nobody where it may not be.
func (v *Service) clearLeftover(ctx context.Context, sess *election.Session, cand *election.Candidate) {
	for next := time.Second; !v.cleared(ctx, sess, cand) && wait.For(ctx, next); next = min(2*next, buryAgain) {
	}
}

// outlasted looks for what the breadcrumb of a tree tells to be alive; nil: it is dead.
func (v *Service) outlasted(tree json.RawMessage) func(election.Leftover) error {
	return func(l election.Leftover) error { return v.node.Machine.Outlasted(tree, seenOf(l)) }
}

// cleared tells whether there is nothing to be done any more. What a term of this session left is that term's.
func (v *Service) cleared(ctx context.Context, sess *election.Session, cand *election.Candidate) bool {
	b, ok, err := cand.Crumb.Named(ctx)
	if err != nil {
		return false
	}
	if !ok || !b.Leftover.Known || b.Node != v.node.Self.Node || b.Session == election.SessionName(sess.ID()) {
		return true
	}
	w := v.witness()
	if m := v.trees.find(b.Tree); m != nil { // its maker is the only one who can tell, with some kinds of containment
		w.End = func(ctx context.Context, _ json.RawMessage) error { return m.tree.End(ctx) }
	}
	verdict, by, err := w.Vouch(ctx, b.Node, b.Machine, b.Boot, b.Tree, seenOf(b.Leftover))
	switch {
	case err == nil && verdict == fencing.Unknown: // it may be another machine of this name
		return true
	case err != nil || verdict != fencing.Dead || v.unit.Owes():
		return false
	}
	dead := v.outlasted(b.Tree)
	if b.Boot != v.node.Self.Boot { // the numbers of another boot
		dead = func(election.Leftover) error { return nil }
	}
	buried, err := cand.Crumb.MarkDead(ctx, b.Tree, dead)
	if err != nil {
		v.log.Debug("the breadcrumb of what is dead now stays for a while", "service", v.name, "error", err)
		return false
	}
	if !buried {
		v.log.Info("what a breadcrumb told of is dead; the breadcrumb is not removed from here: it names no tree, or has changed",
			"service", v.name, "by", by)
		return true
	}
	v.log.Info("nothing of the former child is alive any more, as its breadcrumb said", "service", v.name, "by", by)
	return true
}

// unprovedDeath says that a child may be alive that was to end.
func unprovedDeath(err error) string { return "not proved dead: " + err.Error() }

// seenOf is the process that a breadcrumb tells of.
func seenOf(l election.Leftover) fencing.Process { return fencing.Process{Pid: l.Pid, Start: l.Start} }

// witness is this node.
func (v *Service) witness() witness.At {
	self := v.node.Self
	return witness.At{
		Node: self.Node, Host: child.Host{Machine: self.Machine, Boot: self.Boot}, End: v.node.Machine.KillTree, Look: v.node.Machine.Outlasted,
	}
}
