package supervisor

import (
	"context"

	"understudy/election"
	"understudy/supervisor/child/guardian"
	"understudy/supervisor/guard"
	"understudy/supervisor/witness"
)

// Guardian is the main function of a guardian process. It outlives its supervisor until it has killed the supervisor's programs, and has
// given its locks back.
func Guardian() int {
	return guardian.Main(guardian.Duties{Close: closeSession, Answer: witness.InGuardian(Owed), Undo: undoer})
}

func closeSession(ctx context.Context, c guard.Closing) error {
	return election.CloseEncoded(ctx, election.Closing{Ticket: c.Ticket, Dead: c.Releases, Undone: c.Undone, Left: c.Left, All: c.All}, nil)
}
