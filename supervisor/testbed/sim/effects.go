package sim

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"understudy/fencing"
	"understudy/supervisor/config"
	"understudy/supervisor/unit"
)

// Effects that outlive a process: in one of so many seeds each service begins with a oneshot, whose effect is there until it is undone, or
// until its host boots.
const (
	effectsIn   = 6
	effectsFrom = 1

	effectProgram = "effect"
	undoCommand   = "undo"
)

// effects adds undos that fail, or hang, to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) effects() {
	if p.Seed%effectsIn != effectsFrom || p.Calm {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 5))
	p.Undo, p.NeedsProof = pick(r, time.Second, p.Timeout/4, p.Timeout), r.IntN(2) == 0
	p.Survives = p.Seed/effectsIn%3 == 0
	for i := range p.Episodes {
		e := &p.Episodes[i]
		if r.IntN(2) == 0 {
			continue
		}
		f := Fault{Kind: BadUndo, Node: r.IntN(p.Nodes), Active: true, Server: -1, N: r.IntN(1 << 16), At: drawn(r, e.Length), For: drawn(r, 6*p.Timeout)}
		e.Length = max(e.Length, f.At+f.For)
		e.Faults = append(e.Faults, f)
		if r.IntN(2) == 0 { // and something that ends the term meanwhile
			k := pick(r, StopSupervisor, CrashSupervisor, CutLink, GiveOrder, BadProgram, DeleteLock)
			e.Faults = append(e.Faults, Fault{
				Kind: k, Node: f.Node, Active: true, Server: -1, Way: r.IntN(5), N: r.IntN(1 << 16), At: f.At + drawn(r, f.For), For: drawn(r, 3*p.Timeout),
			})
		}
		sortFaults(e.Faults)
	}
}

func (p *Plan) undoWords() string {
	if p.Undo == 0 {
		return ""
	}
	return fmt.Sprintf(", effects are undone within %v (needs proof: %v, survives a boot: %v)", p.Undo, p.NeedsProof, p.Survives)
}

// undoing is how long a claimant may wait for the undos of another node, and that one for its next attempt.
func (p *Plan) undoing() time.Duration {
	if p.Undo == 0 {
		return 0
	}
	return 40*time.Second + 4*p.Undo
}

// failUndo has a service's undo fail on a node. World.mu is held, as it is at the end.
func (ps *programs) failUndo(f Fault) (end func(), done bool) {
	a, bad := ailment{ps.plan.services()[f.N%ps.plan.Services], undoCommand}, &sickness{node: ps.nodes[f.Node].name, hangs: f.N/4%3 == 0}
	ps.say("%v", f)
	ps.ailing[a] = bad
	return func() {
		if ps.ailing[a] == bad {
			ps.say("over: %v", f)
			delete(ps.ailing, a)
		}
	}, true
}

// effectKey is whose effect it is: two nodes on one host have their own.
type effectKey struct{ node, service string }

// effect is what a oneshot did. World.mu guards it.
type effect struct {
	effectKey
	tree    treeID
	session int64
	token   int64
	struck  bool // an operator has removed lock or breadcrumb
	by      *incarnation
	tried   time.Time // when an undo of it began last that was not interrupted
	cut     time.Time // when the newest was, or the kernel let go of what held it up
}

func (e *effect) String() string {
	return fmt.Sprintf("the effect of %s on %s, token %d", e.service, e.node, e.token)
}

// effectsView is what the checker knows of effects.
type effectsView struct {
	*checker
	there   map[effectKey]*effect
	expired map[int64]bool // sessions that ended without anybody who could say what is left
	undos   map[effectKey]map[*proc]struct{}
}

func newEffectsView(c *checker) effectsView {
	return effectsView{checker: c, there: map[effectKey]*effect{}, expired: map[int64]bool{}, undos: map[effectKey]map[*proc]struct{}{}}
}

// started notes what a process does beside itself: at once, though it may fail later.
func (v *effectsView) started(p *proc) {
	if p.program != effectProgram || p.nature.code == config.ExitUnfit { // then nothing is done
		return
	}
	e := &effect{effectKey: effectKey{p.tree.node, p.tree.service}, tree: p.tree.id, session: p.tree.session, token: p.token, by: v.w.nodes[v.w.indexOf(p.tree.node)].inc}
	for _, other := range v.of(e.service) {
		switch {
		case other.struck, v.services[e.service].unknown:
		case other.node == e.node:
			v.broken("P1", "%v is done beside %v, which is not undone", e, other)
		case !v.untold(other):
			v.broken("P1", "%v is done while %v is there", e, other)
		case v.neglected(other):
			v.broken("P1", "%v is done while %v is there, which its supervisor does not undo", e, other)
		}
	}
	v.there[e.effectKey] = e
}

// begins looks at what has effects: in the tree of a follower nothing may.
func (v *effectsView) begins(p *proc) {
	if p.program == effectProgram && p.tree.aside != "" {
		v.broken("copies", "%v begins, and its copy is not the primary", p)
	}
}

// follows looks at a copy that becomes a follower: nobody must reach it through an address of the primary.
func (v *effectsView) follows(t *tree) {
	if e := v.there[effectKey{t.node, t.service}]; e != nil && !e.struck {
		v.broken("copies", "the copy of %s on %s becomes a follower, and %v is not undone", t.service, t.node, e)
	}
}

// untold reports whether nobody could tell that an effect is left: its session expired, or a stranger ended it, and the breadcrumb did not
// say so before. Then a delay counts, unless the plan says that none does.
func (v *effectsView) untold(e *effect) bool {
	if v.sessions.lost[e.session] {
		return true
	}
	return !v.w.plan.NeedsProof && !v.w.plan.Survives && (v.expired[e.session] || v.sessions.endedByStranger(e.session))
}

// neglected reports whether the supervisor that has done something could undo it since its programs are dead, and has not begun to.
func (v *effectsView) neglected(e *effect) bool {
	n, died := v.w.nodes[v.w.indexOf(e.node)], v.services[e.service].died[e.token]
	now := time.Now()
	soon := died.by.IsZero() || now.Sub(died.by) < time.Second || now.Sub(e.cut) < time.Second
	held := slices.ContainsFunc(inOrder(v.services[e.service].living), func(p *proc) bool { return p.tree.id == e.tree })
	if soon || held || n.woke(died.after, now) || n.hungBetween(died.after, now) {
		return false
	}
	return n.inc == e.by && e.by != nil && e.by.running() && n.host.disk == nil && e.tried.Before(died.after)
}

// undoing looks at an undo that begins. P2: nothing of its term's tree is alive, unless it runs in that. And no other undo is under way.
func (v *effectsView) undoing(p *proc) {
	if p.program != undoCommand {
		return
	}
	of := effectKey{p.tree.node, p.tree.service}
	e := v.there[of]
	for other := range v.undos[of] {
		if !other.killed {
			v.broken("P2", "%v undoes what %v undoes", p, other)
		}
	}
	if v.undos[of] == nil {
		v.undos[of] = map[*proc]struct{}{}
	}
	v.undos[of][p] = struct{}{}
	if e != nil {
		e.tried = time.Now()
	}
	if e == nil || p.tree.aside == "" {
		return
	}
	if e.token != p.token {
		v.broken("P2", "%v is undone by an undo of token %d", e, p.token)
	}
	for _, other := range inOrder(v.services[e.service].living) {
		if other.tree.id == e.tree {
			v.broken("P2", "%v is undone while %v is alive", e, other)
		}
	}
}

// ended notes an undo that has succeeded, and that the kernel no longer holds what has to be dead before one may begin.
func (v *effectsView) ended(p *proc) {
	of := effectKey{p.tree.node, p.tree.service}
	if e := v.there[of]; p.doomed && e != nil && e.tree == p.tree.id {
		e.cut = time.Now()
	}
	if p.program != undoCommand {
		return
	}
	delete(v.undos[of], p)
	if p.status.Code == 0 {
		delete(v.there, of)
	}
	if e := v.there[of]; e != nil && p.killed && !p.shot && p.struck.Sub(p.since) < v.w.plan.Undo {
		e.tried, e.cut = time.Time{}, time.Now() // it has not failed: another attempt follows at once
	}
}

// undoes reports whether a process is an undo's: nothing of the service runs in it.
func (p *proc) undoes() bool { return p != nil && (p.program == undoCommand || p.parent.undoes()) }

// off notes that a host has no power: only some effects survive that.
func (v *effectsView) off(node string) {
	if !v.w.plan.Survives {
		v.fenced(node)
	}
}

// fenced notes that a fencing method has been at a host: its success counts as a proof for effects, too.
func (v *effectsView) fenced(node string) {
	maps.DeleteFunc(v.there, func(k effectKey, _ *effect) bool { return k.node == node })
}

func (v *effectsView) of(service string) (all []*effect) {
	for _, k := range slices.SortedFunc(maps.Keys(v.there), func(a, b effectKey) int { return strings.Compare(a.node, b.node) }) {
		if k.service == service {
			all = append(all, v.there[k])
		}
	}
	return all
}

// strike notes that an operator removes something of a service by hand.
func (v *effectsView) strike(service string) {
	for _, e := range v.of(service) {
		e.struck = true
	}
}

// lockGone looks at P2: only the end of a session takes the lock of a term whose effects are not undone.
func (v *effectsView) lockGone(service string, was lockView, sessionEnded bool) {
	for _, e := range v.of(service) {
		if e.token == was.token && !e.struck && !sessionEnded {
			v.broken("P2", "the lock of %s was given back, and %v is not undone", service, e)
		}
	}
}

// crumbGone looks at P2: a breadcrumb is removed, or written over, only once all is undone, or when nobody could tell that it is not.
func (v *effectsView) crumbGone(service string, was, now crumbView) {
	for _, e := range v.of(service) {
		switch {
		case e.tree != was.tree || e.struck:
		case was.left:
			v.broken("P2", "the breadcrumb of %s said that effects are left, and went, and %v is not undone", service, e)
		case !now.there:
			v.broken("P2", "the breadcrumb of %s was removed, and %v is not undone", service, e)
		case !v.untold(e):
			v.broken("P2", "the breadcrumb of %s was written over, and %v is not undone", service, e)
		}
	}
}

// note is what a supervisor has to undo. World.mu guards it.
type note struct {
	data    []byte
	lasting bool // a boot does not lose it
}

// notes are where a supervisor keeps it. World.mu guards them.
type notes struct {
	by   *gate
	host *host
	fileKey
}

var _ unit.Notes = notes{}

func (i *incarnation) notes(service string) unit.Notes {
	return notes{i.gate, i.node.host, i.file(service)}
}

// Path implements unit.Notes. It is a path that is there, in a folder of root's: of a file that cannot be read, the product asks for that.
func (n notes) Path() string { return "/" }

// Try implements unit.Notes.
func (n notes) Try(bool) error { return n.touch(context.Background(), true, nil) }

// Load implements unit.Notes.
func (n notes) Load() ([]byte, error) {
	if err := n.touch(context.Background(), false, nil); err != nil {
		return nil, err
	}
	h := n.host
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	one, there := h.notes[n.fileKey]
	if !there {
		return nil, fs.ErrNotExist
	}
	return one.data, nil
}

// Save implements unit.Notes.
func (n notes) Save(data []byte, lasting bool) error {
	h := n.host
	write := func() {
		if delete(h.notes, n.fileKey); data != nil {
			h.notes[n.fileKey] = note{data, lasting}
		}
	}
	written := false
	late := func() {
		if written = true; n.by.alive() {
			write()
		}
	}
	if err := n.touch(context.Background(), data != nil, late); err != nil {
		return err
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if !written {
		write()
	}
	return nil
}

// owed is supervisor.PendingEffects on this host.
func (h *host) owed(t fencing.Target, boot string) []string {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	of := unit.TermRef{Root: t.Root, Node: t.Node, Service: t.Service, Token: t.Token, Boot: t.Boot, Survive: t.Survive}
	if h.disk != nil && h.disk.way != diskFull {
		return append(of.PendingEffects(boot, nil), "unknown")
	}
	var text []byte
	for key, one := range h.notes {
		if key.effectKey == (effectKey{t.Node, t.Service}) {
			text = one.data
		}
	}
	return of.PendingEffects(boot, text)
}

// PendingEffects implements host.Machine.
func (i *incarnation) PendingEffects(t fencing.Target, boot string) []string {
	return i.node.host.owed(t, boot)
}
