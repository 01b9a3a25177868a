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
	moves moves
	log   hclog.Logger
	owed  *ending // of a term whose end is not written yet
}

// entry is what the history says of one term.
type entry struct {
	election.Activation
	story election.Proof // how the former active was fenced
}

func newEntry(token int64) entry {
	return entry{Activation: election.Activation{Token: token, Start: time.Now().UTC()}}
}

// fenced notes how the former active node was fenced.
func (e *entry) fenced(story election.Proof) { e.story = story }

// took notes how long that took. There was a former active node.
func (e *entry) took(d time.Duration) { e.FenceMs = d.Milliseconds() }

// begun notes that the programs may start: from here on the term belongs to the history, however short it is.
func (e *entry) begun() { e.Fenced = e.story }

// ending is the end of a term. If the term ended with its session, the next session writes it: the node that took over knows only
// that this one was lost.
type ending struct {
	entry election.Activation
	why   election.Reason
	end   time.Time // zero: its death is proved only now
}

// ends notes that a term is about to end, before that is proved.
func (h *history) ends(e *entry, why election.Reason) {
	h.owed = &ending{entry: e.Activation, why: why}
}

// ended notes that it has.
func (h *history) ended() { h.owed.end = time.Now().UTC() }

// takeOwed returns the unwritten end, once.
func (h *history) takeOwed() *ending {
	owed := h.owed
	h.owed = nil
	return owed
}

// correct writes the end of a term of a former session.
func (h *history) correct(ctx context.Context, cand *election.Candidate, w ending) {
	if w.entry.Entry == "" {
		return
	}
	if w.end.IsZero() {
		w.end = time.Now().UTC()
	}
	w.entry.End, w.entry.Reason = &w.end, w.why
	if err := cand.History.Correct(ctx, w.entry.Entry, w.entry); err != nil && ctx.Err() == nil {
		h.log.Debug("the end of a former term is not in the history", "error", err)
	}
}

// begin writes the term's entry, after the lock was taken.
func (h *history) begin(ctx context.Context, cand *election.Candidate, e *entry, limit config.Moves) {
	if !wait.For(ctx, settling) {
		return // it is recorded at the term's end
	}
	if e.Entry != "" {
		return // a former image of this process has written it
	}
	name, err := cand.History.Record(context.WithoutCancel(ctx), e.Activation, election.LostTo(e.Fenced))
	e.Entry = name
	if err != nil && ctx.Err() == nil {
		h.log.Debug("the history is incomplete", "error", err)
	}
	h.moves.limit(ctx, cand, limit, e.Token)
}

// end closes the entry.
func (h *history) end(ctx context.Context, cand *election.Candidate, e *entry, limit config.Moves, why election.Reason) {
	now := time.Now().UTC()
	owed := h.takeOwed()
	ctx = context.WithoutCancel(ctx)
	wait.For(ctx, settling) // let the node that takes over write first
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	a := e.Activation
	a.End, a.Reason = &now, why
	if a.Entry == "" { // a term too short to be recorded while it lasted, or none
		if a.Fenced == "" {
			return
		}
		if _, err := cand.History.Record(bounded, a, election.LostTo(a.Fenced)); err != nil {
			h.log.Debug("the term is not in the history", "error", err)
		}
		h.moves.limit(bounded, cand, limit, e.Token)
		return
	}
	if err := cand.History.Amend(bounded, a.Entry, a); err != nil {
		h.log.Debug("the end of the term is not in the history", "error", err)
		h.owed = owed // the next session writes it
	}
}
