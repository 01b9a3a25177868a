package supervisor

import (
	"context"
	"time"

	"understudy/election"
)

// How long it is waited before a lock is given back once more whose release ZooKeeper has refused.
const (
	minRefusal = time.Second
	maxRefusal = 15 * time.Second
)

// giveBack gives the lock back. As long as ZooKeeper refuses that, the lock is kept, the other nodes are told why, and it is tried
// ever more rarely: until the session is over, or all leave it, which then takes the lock with it. So it does at once where the
// command was to run once.
func (v *service) giveBack(ctx context.Context, t turn, claim *election.Claim) error {
	trying, enough := linger(ctx, t.leave, proofPatience)
	defer enough()
	for wait := minRefusal; ; wait = min(2*wait, maxRefusal) {
		err := claim.Release(context.WithoutCancel(ctx)) // what is not answered is bounded by the session
		if err == nil || t.sess.Over() != nil || v.finished != nil {
			return err
		}
		v.log.Error("the lock cannot be given back, and is kept until then", "service", v.name, "error", err, "again in", wait)
		v.stance.Store(stuck)
		v.note = "the lock cannot be given back: " + err.Error()
		v.say()
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-t.sess.Ended():
		case <-trying.Done():
			again.Stop()
			return err
		}
	}
}
