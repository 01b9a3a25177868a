package supervisor

import (
	"context"
	"time"

	"understudy/election"
)

// lastWords are what the history does not say yet of a term that ended with its session. Whoever took over could only say that
// this node was lost.
type lastWords struct {
	entry election.Activation
	over  event
	end   time.Time // zero: its death is proved only now
}

// sayLast writes them, in the next session.
func (v *service) sayLast(ctx context.Context, cand *election.Candidate, w lastWords) {
	if w.entry.Entry == "" {
		return
	}
	if w.end.IsZero() {
		w.end = time.Now().UTC()
	}
	w.entry.End, w.entry.Reason = &w.end, w.over.String()
	if err := cand.Correct(ctx, w.entry.Entry, w.entry); err != nil && ctx.Err() == nil {
		v.log.Debug("the end of a former term is not in the history", "service", v.name, "error", err)
	}
}
