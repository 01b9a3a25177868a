package election

import (
	"context"
	"errors"
	"testing"
	"time"

	"understudy/supervisor/testbed/zkfaults"
)

// An inscription that was not waited for may be carried out all the same: the lock is then given back together with the breadcrumb,
// for which others would wait.
func TestALockIsGivenBackWithABreadcrumbThatWasWrittenUnheard(t *testing.T) {
	inWorld(t, func(w *world) {
		p := Paths{"/understudy", "svc"}
		w.leaveCrumb()
		w.claims("a", func(ctx context.Context, s *Session, c *Claim) error {
			quick := w.zk.Delay(zkfaults.Everyone, 50*time.Millisecond)
			writing, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(75*time.Millisecond, func() { cancel(errors.New("paused")) })
			if err := c.Inscribe(writing); err == nil {
				w.Error("the inscription is answered")
			}
			time.Sleep(200 * time.Millisecond)
			quick()
			try(c.Release(ctx))
			v, err := s.getW(ctx, p.Crumb())
			if err == nil && v.exists {
				if b, _ := ReadBreadCrumb(v.data); b.Session == SessionName(s.ID()) {
					w.Errorf("the lock is given back, and the breadcrumb stays: %s", v.data)
				}
			}
			return err
		})
	})
}
