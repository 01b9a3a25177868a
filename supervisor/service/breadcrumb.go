package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/child/box"
	"understudy/supervisor/host"
	"understudy/supervisor/wait"
	"understudy/supervisor/witness"
)

// breadcrumb notes in the service's breadcrumb what this machine knows about the tree that the breadcrumb names.
type breadcrumb struct {
	root              string // of the cluster
	self              election.Node
	machine           host.Machine
	trees             *trees
	hasPendingEffects func() bool // whether the effects of oneshots must still be undone
	died              func(session string) bool
	log               hclog.Logger
}

// writePatience is how long ZooKeeper may take to write such a note.
const writePatience = time.Second

// noteAlive notes in the breadcrumb, if that names the tree, that a process of it is alive. P5: if the session ends before the tree does,
// no delay proves the tree dead.
func (b *breadcrumb) noteAlive(ctx context.Context, cand *election.Candidate, tree json.RawMessage, err error) {
	if cand == nil || len(tree) == 0 {
		return
	}
	l, _ := leftoverIn(err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writePatience)
	defer cancel()
	_, err = cand.Crumb.NoteLeftover(ctx, tree, election.Leftover{
		Pid: l.Pid, Start: l.Start, Program: l.Program, State: l.State, Tracer: l.Tracer, Since: time.Now().UTC(),
	})
	if err != nil {
		b.log.Warn("cannot note in the record of the active node that processes of the program are alive: "+
			"another node may accept a delay as proof", "error", err)
	}
}

// noteNotUndone notes in the breadcrumb, if that names the tree, which effects are not undone. P5: no delay proves that they are.
func (b *breadcrumb) noteNotUndone(ctx context.Context, cand *election.Candidate, tree json.RawMessage, names []string) {
	if cand == nil || len(tree) == 0 || len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writePatience)
	defer cancel()
	if _, err := cand.Crumb.NotUndone(ctx, tree, names); err != nil {
		b.log.Warn("cannot note in the record of the active node that oneshots are not undone: another node may accept a delay as proof",
			"not undone", names, "error", err)
	}
}

// killNow ends a tree at once, even while a check, a hook or an undo runs in it. P1: another node may be counting its grace delay. The
// term makes the proof. Without a candidate killNow leaves the breadcrumb alone.
func (b *breadcrumb) killNow(ctx context.Context, cand *election.Candidate, tree host.Tree) {
	for _, patience := range []time.Duration{endFirst, proofPatience} {
		bounded, cancel := context.WithTimeout(ctx, patience)
		err := tree.End(bounded)
		cancel()
		if err == nil {
			return
		}
		b.log.Debug("not proved dead at once", "error", err)
		b.noteAlive(ctx, cand, idOf(tree), err) // P5: the node that takes over must read it before its delay is over
	}
}

// witness is this node's knowledge of deaths.
func (b *breadcrumb) witness() witness.Prover {
	return witness.Prover{
		Node: b.self.Node, Host: box.Host{Machine: b.self.Machine, Boot: b.self.Boot}, End: b.machine.KillTree, Look: b.machine.Outlasted,
		PendingEffects: b.machine.PendingEffects, Died: b.died,
	}
}

// target is the program that a breadcrumb names.
func (b *breadcrumb) target(p *election.BreadCrumb, token int64) fencing.Target {
	return fencing.Target{
		Root: b.root, Service: b.trees.service, Node: p.Node, Host: p.Host, Machine: p.Machine, Boot: p.Boot, Token: token,
		GuardianPid: p.GuardianPid, Address: p.Agent,
		Session: p.Session, Tree: p.Tree, Seen: seenOf(p.Leftover), Survive: p.Survive,
	}
}

// outlasted looks for the process that was alive by the breadcrumb of a tree; nil: it is dead.
func (b *breadcrumb) outlasted(tree json.RawMessage) func(election.Leftover) error {
	return func(l election.Leftover) error { return b.machine.Outlasted(tree, seenOf(l)) }
}

// clear removes a breadcrumb which says that a process of a previous session of this node is alive, once that is proved dead. It may
// have died unseen: while no supervisor ran here, or with the machine. P6: otherwise only this node could become active again, or
// no node, if this one may not.
func (b *breadcrumb) clear(ctx context.Context, sess *election.Session, cand *election.Candidate) {
	for next := time.Second; !b.cleared(ctx, sess, cand) && wait.For(ctx, next); next = min(2*next, endAgain) {
	}
}

// cleared reports whether nothing is left to do. A term of this session cleans up its own processes.
func (b *breadcrumb) cleared(ctx context.Context, sess *election.Session, cand *election.Candidate) bool {
	named, ok, err := cand.Crumb.Named(ctx)
	if err != nil {
		return false
	}
	if !ok || !named.Awaits() || named.Node != b.self.Node || named.Session == election.SessionName(sess.ID()) {
		return true
	}
	w := b.witness()
	if m := b.trees.find(named.Tree); m != nil { // with some kinds of containment, only the tree's maker knows
		w.End = func(ctx context.Context, _ json.RawMessage) error { return m.tree.End(ctx) }
	}
	verdict, by, err := w.Prove(ctx, b.target(&named, named.Token))
	switch {
	case err == nil && verdict == fencing.Unknown: // it may be another machine of this name
		return true
	case err != nil || verdict != fencing.Dead || b.hasPendingEffects():
		return false
	}
	dead := b.outlasted(named.Tree)
	if named.Boot != b.self.Boot { // its pids are those of another boot
		dead = func(election.Leftover) error { return nil }
	}
	removed, err := cand.Crumb.MarkDead(ctx, named.Tree, dead)
	if err != nil {
		b.log.Debug("cannot delete the record of a dead program yet", "error", err)
		return false
	}
	if !removed {
		b.log.Info("the program of a record is dead: this node does not delete the record, which names no processes or has changed",
			"by", by)
		return true
	}
	b.log.Info("the previous program is dead now, with all its processes, so this node has deleted its record", "by", by)
	return true
}

// errLeftover says that a delay proves nothing.
var errLeftover = errors.New("its record gives processes of its program that are alive: only a proof that they are dead counts, no delay")

func leftoverError(p *election.BreadCrumb) error {
	l := p.Leftover
	return fmt.Errorf("%w (%v, says %s)", errLeftover,
		box.Leftover{Tree: "its tree", Pid: l.Pid, Program: l.Program, State: l.State, Tracer: l.Tracer}, l.By)
}

// errEffects says the same.
var errEffects = errors.New("by its record, its host has not undone what oneshots did: only a proof counts, no delay")

// errSurvives says the same of effects that nothing undoes while their host is off.
var errSurvives = errors.New("what its oneshots did survives a boot of its host: only a proof that it is undone counts, no delay")

// errNeedsProof says the same of a config.
var errNeedsProof = errors.New("needs_proof is set: only a proof that the previous node's program is dead counts, no delay")

// undelayed is why no delay proves anything about the node that a breadcrumb names, nil: one may.
func undelayed(p *election.BreadCrumb) error {
	switch {
	case p.Leftover.Known:
		return leftoverError(p)
	case len(p.Left) > 0:
		return fmt.Errorf("%w (%s)", errEffects, strings.Join(p.Left, ", "))
	case len(p.Survive) > 0:
		return fmt.Errorf("%w (%s)", errSurvives, strings.Join(p.Survive, ", "))
	case len(p.NeedProof) > 0:
		return fmt.Errorf("%w (%s)", errNeedsProof, strings.Join(p.NeedProof, ", "))
	}
	return nil
}

// seenOf is the process that a breadcrumb calls alive.
func seenOf(l election.Leftover) fencing.ProcessID {
	return fencing.ProcessID{Pid: l.Pid, Start: l.Start}
}
