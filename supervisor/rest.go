package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"

	"understudy/election"
)

// rest leaves the lock to others for a while; after a refused fencing, until that is settled at the longest.
func (v *service) rest(ctx context.Context, t turn) (action, error) {
	if err := errors.Join(t.cand.Withdraw(ctx), t.cand.Prefer(ctx, 0)); err != nil {
		return nothing, err
	}
	v.log.Warn("resting, so that another node can try", "service", v.name, "for", v.Restart.RejoinAfter)
	enough := time.NewTimer(v.Restart.RejoinAfter)
	defer enough.Stop()
	waiting, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	settled := make(chan struct{})
	if v.refused {
		v.refused = false
		wg.Go(func() {
			if t.cand.Settled(waiting) == nil {
				close(settled)
			}
		})
	}
	for {
		switch {
		case v.takeUp():
			v.log.Info("its config has changed: not resting any longer", "service", v.name)
			return v.on(rested), nil
		case v.forced():
			v.log.Info("an operator wants it here: not resting any longer", "service", v.name)
			return v.on(rested), nil
		case v.erased():
			return nothing, election.ErrDeleted
		}
		select {
		case <-v.news.stir:
		case <-settled:
			v.log.Info("the former active is known to be dead now", "service", v.name)
			return v.on(rested), nil
		case <-enough.C:
			if ctx.Err() == nil {
				return v.on(rested), nil
			}
		case <-ctx.Done():
			return nothing, context.Cause(ctx)
		}
	}
}
