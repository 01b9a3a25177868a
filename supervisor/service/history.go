package service

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/wait"
)

// history writes this node's terms into the service's history.
type history struct {
	moves     moves
	log       hclog.Logger
	unwritten *ending // of a term whose end is not written yet
}

// entry is what the history says of one term.
type entry struct {
	election.Activation
	proof     election.Proof       // how the previous active was fenced
	previous  election.Ending      // of the previous active's programs, unless it writes that itself
	readiness chan readiness       // of the programs; capacity 1
	lost      *election.Activation // the one that this one took over from without a switchover, until it is logged how long nothing ran

	idleSince     time.Time // no process lives since then, and none was started; zero: some may
	idleBefore    time.Time // idleSince, as it was before the newest run
	endSeen       time.Time // what a stop saw last, or a previous image: the newest program ended then or later; zero: it saw none
	notReadySince time.Time // the programs were ready before that, and were not since; zero: they are, or never were
	wasReady      bool      // they were ready since they were started
}

// readiness says when programs were ready, how long on_active ran before that, and how long they were down before, if that was not the
// first time; or since when they are down.
type readiness struct {
	at       time.Time // zero: they are down
	hooked   time.Duration
	restarts int
	down     time.Duration
	since    *time.Time
}

func newEntry(token int64) entry {
	return entry{Activation: election.Activation{Token: token, Start: time.Now().UTC()}, readiness: make(chan readiness, 1)}
}

// noteStart notes that the programs may start: from here on the term belongs to the history, however short it is.
func (e *entry) noteStart() {
	now := time.Now().UTC()
	e.Fenced, e.Started = e.proof, &now
}

// noteStarting notes that a process may be started from now on.
func (e *entry) noteStarting() {
	e.idleBefore, e.idleSince, e.endSeen, e.wasReady = e.idleSince, time.Time{}, time.Time{}, false
}

// noteNotStarted notes that none was.
func (e *entry) noteNotStarted() {
	if e.idleSince.IsZero() {
		e.idleSince = e.idleBefore
	}
}

// noteDead notes that the last process was proved dead.
func (e *entry) noteDead() {
	if e.idleSince.IsZero() {
		e.idleSince = time.Now().UTC()
	}
	if e.wasReady && e.notReadySince.IsZero() {
		e.notReadySince = e.idleSince
	}
}

// noteStopped notes when a stop saw the newest program end, and when it had proved that all are dead.
func (e *entry) noteStopped(left, idle time.Time) {
	e.endSeen = left.UTC()
	if e.idleSince.IsZero() && !idle.IsZero() {
		e.idleSince = idle.UTC()
	}
}

// noteCleared notes that the last process was proved dead, and that they may be started again.
func (e *entry) noteCleared() {
	e.noteDead()
	since := e.idleSince
	if !e.notReadySince.IsZero() {
		since = e.notReadySince
	}
	e.queueReadiness(readiness{since: &since})
}

// noteReady notes that the programs are ready.
func (e *entry) noteReady(hooked time.Duration) {
	r := readiness{at: time.Now().UTC(), hooked: hooked}
	if !e.notReadySince.IsZero() {
		r.restarts, r.down = 1, r.at.Sub(e.notReadySince)
	}
	e.notReadySince, e.wasReady = time.Time{}, true
	e.queueReadiness(r)
}

// queueReadiness may be called while recordStart has the rest of the entry.
func (e *entry) queueReadiness(r readiness) {
	select {
	case before := <-e.readiness: // nobody has seen it yet
		r.restarts, r.down = r.restarts+before.restarts, r.down+before.down
		if !before.at.IsZero() {
			r.at, r.hooked = before.at, before.hooked
		}
	default:
	}
	e.readiness <- r
}

// applyReadiness puts into the entry when its programs were ready for the first
// time, and how long they were down since. It reports whether that is new.
func (e *entry) applyReadiness(r readiness) bool {
	changed := r.restarts > 0 || r.since != nil || e.DownSince != nil
	if e.Ready == nil && !r.at.IsZero() {
		e.Ready, e.HookMs, changed = &r.at, r.hooked.Milliseconds(), true
	}
	e.Restarts, e.DownMs, e.DownSince = e.Restarts+r.restarts, e.DownMs+r.down.Milliseconds(), r.since
	return changed
}

// drainReadiness is applyReadiness, if there is news.
func (e *entry) drainReadiness() {
	select {
	case r := <-e.readiness:
		e.applyReadiness(r)
	default:
	}
}

// ending is the end of a term. If the term ended with its session, the next session writes it: the node that took over knows only
// that this one was lost.
type ending struct {
	entry election.Activation
	why   election.Reason
	began time.Time // of the ending
	end   time.Time // zero: its death is proved only now
}

// noteEnd notes that a term is about to end, before that is proved.
func (h *history) noteEnd(e *entry, why election.Reason) {
	e.drainReadiness()
	h.unwritten = &ending{entry: e.Activation, why: why, began: time.Now().UTC()}
}

// lateProof is how much later than the end of the last process its proof may be, if nothing hangs.
const lateProof = time.Second / 4

// noteProved notes when the last process of that term was proved dead.
func (h *history) noteProved(e *entry) {
	e.noteDead()
	if !e.endSeen.IsZero() && e.idleSince.Sub(e.endSeen) > lateProof {
		h.unwritten.entry.EndMin, h.unwritten.entry.EndMax = &e.endSeen, &e.idleSince
	}
	h.unwritten.end, h.unwritten.entry.DownSince = e.idleSince, nil
	if !e.notReadySince.IsZero() { // since then they were started in vain
		h.unwritten.entry.DownMs += e.idleSince.Sub(e.notReadySince).Milliseconds()
	}
}

// takeUnwritten returns the unwritten end, once.
func (h *history) takeUnwritten() *ending {
	unwritten := h.unwritten
	h.unwritten = nil
	return unwritten
}

// correct writes the end of a term of a previous session.
func (h *history) correct(ctx context.Context, cand *election.Candidate, w ending) {
	if w.entry.Entry == "" {
		return
	}
	if w.end.IsZero() {
		w.end = time.Now().UTC()
		w.entry.EndMin, w.entry.EndMax = &w.began, &w.end
	}
	w.entry.End, w.entry.Reason = &w.end, w.why
	if err := cand.History.Correct(election.InTurn(ctx), w.entry.Entry, w.entry); err != nil && ctx.Err() == nil {
		h.log.Debug("the end of a previous activation is not in the history", "error", err)
	}
}

// recordStart writes the term's entry, after the lock was taken, and when the programs are ready.
func (h *history) recordStart(ctx context.Context, cand *election.Candidate, e *entry, limit config.Moves) {
	if !wait.For(ctx, settling) {
		return // it is recorded at the term's end
	}
	e.drainReadiness()
	if e.Entry == "" { // else a previous image of this process has written it
		for pause := settling; ; pause = min(2*pause, time.Second) {
			// P1: a term that ends waits for it, and for no turn.
			err := h.record(context.WithoutCancel(election.InTurn(ctx)), cand, e, e.Activation)
			if err != nil && ctx.Err() == nil {
				h.log.Debug("the history is incomplete", "error", err)
			}
			if err == nil || e.Entry != "" {
				break
			}
			if !wait.For(ctx, pause) {
				return // it is recorded at the term's end
			}
		}
		h.moves.limit(ctx, cand, limit, e.Token)
	}
	for {
		h.tellGap(e)
		select {
		case r := <-e.readiness:
			if !e.applyReadiness(r) {
				continue
			}
		case <-ctx.Done():
			return
		}
		if err := cand.History.Amend(election.InTurn(ctx), e.Entry, e.Activation); err != nil && ctx.Err() == nil {
			h.log.Debug("the history does not say when the programs were ready", "error", err)
		}
	}
}

// record writes the entry, and logs a takeover: that nobody has handed over.
func (h *history) record(ctx context.Context, cand *election.Candidate, e *entry, a election.Activation) (err error) {
	var lost *election.Activation
	e.Entry, lost, err = cand.History.Record(ctx, a, election.LostTo(a.Fenced), e.previous)
	if lost != nil {
		facts := []any{"previous", lost.Node, "proof", proofOf(a.Fenced)}
		if a.FenceMs > 0 {
			facts = append(facts, "proof_took", time.Duration(a.FenceMs)*time.Millisecond)
		}
		h.log.Warn("took over without a switchover", append(facts, "token", a.Token)...)
		e.lost = lost
	}
	return err
}

// tellGap logs how long no program ran, once that is over: the gap of the history.
func (h *history) tellGap(e *entry) {
	if e.lost == nil || e.Ready == nil {
		return
	}
	h.log.Info("ready after a takeover", "previous", e.lost.Node, "nothing_ran", downTime(*e.lost, e.Activation), "token", e.Token)
	e.lost = nil
}

// proofOf is how a previous active node was known to be dead.
func proofOf(p election.Proof) string {
	if p.Fenced() {
		return string(p)
	}
	return "its guardians gave the lock back"
}

// downTime is how long nothing ran before the programs of an activation were ready, as far as that is known and the nodes' clocks agree.
func downTime(lost, a election.Activation) string {
	least, most := lost.EndMax, lost.EndMin
	if a.Ready == nil || least == nil || lost.Started != nil && lost.Ready == nil { // in the last case nothing ran before it, either
		return "unknown"
	}
	since := func(t time.Time) time.Duration { return max(a.Ready.Sub(t), 0).Round(time.Millisecond) }
	switch {
	case most == nil:
		return "at least " + since(*least).String()
	case most.Equal(*least):
		return since(*least).String()
	}
	return since(*least).String() + " to " + since(*most).String()
}

// recordEnd closes the entry.
func (h *history) recordEnd(ctx context.Context, cand *election.Candidate, e *entry, limit config.Moves, why election.Reason) {
	unwritten := h.takeUnwritten()
	ctx = context.WithoutCancel(ctx)
	wait.For(ctx, settling) // let the node that takes over write first
	bounded, cancel := context.WithTimeout(ctx, proofPatience)
	defer cancel()
	a := unwritten.entry
	a.End, a.Reason = &unwritten.end, why
	if a.Entry == "" { // a term too short to be recorded while it lasted, or none
		if a.Fenced == "" {
			return
		}
		if err := h.record(bounded, cand, e, a); err != nil {
			h.log.Debug("the activation is not in the history", "error", err)
		}
		h.moves.limit(bounded, cand, limit, e.Token)
		return
	}
	if err := cand.History.Correct(bounded, a.Entry, a); err != nil {
		h.log.Debug("the end of the activation is not in the history", "error", err)
		h.unwritten = unwritten // the next session writes it
	}
}
