package service

import (
	"context"
	"time"

	"understudy/election"
	"understudy/supervisor/config"
	"understudy/supervisor/wait"
)

// lastWords are what the history does not say yet of a term that ended with its session. Whoever took over could only say that
// this node was lost.
type lastWords struct {
	entry election.Activation
	over  election.Reason
	end   time.Time // zero: its death is proved only now
}

// sayLast writes them, in the next session.
func (v *Service) sayLast(ctx context.Context, cand *election.Candidate, w lastWords) {
	if w.entry.Entry == "" {
		return
	}
	if w.end.IsZero() {
		w.end = time.Now().UTC()
	}
	w.entry.End, w.entry.Reason = &w.end, w.over
	if err := cand.History.Correct(ctx, w.entry.Entry, w.entry); err != nil && ctx.Err() == nil {
		v.log.Debug("the end of a former term is not in the history", "service", v.name, "error", err)
	}
}

// recordBegin gives the term its entry, once the lock's taking is over.
func (t *term) recordBegin(ctx context.Context, moves config.Moves) {
	v, token := t.v, t.claim.Token
	if !wait.For(ctx, settling) {
		return // it is recorded at the term's end
	}
	if t.entry.Entry != "" {
		return // by a former image of this process
	}
	name, err := t.cand.History.Record(context.WithoutCancel(ctx), t.entry, election.LostTo(t.entry.Fenced))
	t.entry.Entry = name
	if err != nil && ctx.Err() == nil {
		v.log.Debug("the history is incomplete", "service", v.name, "error", err)
	}
	v.stayPut(ctx, t.cand, moves, token)
}

// recordEnd closes the entry.
func (t *term) recordEnd(ctx context.Context) {
	v := t.v
	now := time.Now().UTC()
	words := v.mem.words
	v.mem.words = nil
	ctx = context.WithoutCancel(ctx)
	wait.For(ctx, settling) // whoever takes over comes first
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	entry := t.entry
	entry.End, entry.Reason = &now, v.state.Cause.Why()
	if entry.Entry == "" { // a term too short to be recorded while it lasted, or none
		if entry.Fenced == "" {
			return
		}
		if _, err := t.cand.History.Record(bounded, entry, election.LostTo(entry.Fenced)); err != nil {
			v.log.Debug("the term is not in the history", "service", v.name, "error", err)
		}
		v.stayPut(bounded, t.cand, v.conf.Moves, v.mem.token)
		return
	}
	if err := t.cand.History.Amend(bounded, entry.Entry, entry); err != nil {
		v.log.Debug("the end of the term is not in the history", "service", v.name, "error", err)
		v.mem.words = words // the next session says it
	}
}
