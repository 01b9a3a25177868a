package election

import (
	"context"
	"slices"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

// Whoever has undone a program's effects after its session was over removes its record: no other node can know that they are undone. P2: of
// effects that are left, and of another session, the record stays.
func TestARecordOfWhatIsUndoneGoesAfterItsSession(t *testing.T) {
	for name, c := range map[string]struct {
		undone bool
		node   string // that the record names
		gone   bool
	}{
		"undone": {undone: true, gone: true}, "left": {}, "another's": {undone: true, node: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				ticket, release := w.leave("a")
				release.Undone, release.Left = c.undone, !c.undone
				w.zk.Expire(ticket.Session)
				w.asOperator(func(ctx context.Context, s *Session) error {
					v, err := s.getW(ctx, release.Crumb)
					try(err)
					data := leaveEffects(v.data, []string{"vip"})
					if c.node != "" {
						data = encode(BreadCrumb{Node: c.node, Session: "0x77"})
					}
					return s.set(ctx, release.Crumb, data, -1)
				})
				before := w.zk.Sessions()
				must.OK(w, ticket.Close(w.Context(), w.dial, []Release{release}, endedAt(time.Now()), c.undone))
				if after := w.zk.Sessions(); len(after) != len(before) || slices.Contains(after, ticket.Session) {
					w.Errorf("there were the sessions %x, and are %x", before, after)
				}
				w.asOperator(func(ctx context.Context, s *Session) error {
					there, err := exists(ctx, s, release.Crumb)
					if there == c.gone {
						w.Errorf("the record is there: %v", there)
					}
					return err
				})
			})
		})
	}
}
