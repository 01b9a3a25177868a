package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/unit"
)

// backOff waits before the next start, while nothing runs, and tells what follows: nothingYet, when it is to be started here. All
// that may end a term ends the waiting at once. Of a service that only a pause keeps here, held is what follows without it.
func (v *service) backOff(ctx context.Context, d time.Duration, held event) event {
	over := time.NewTimer(d)
	defer over.Stop()
	var preferred <-chan time.Time
	for {
		changed := v.takeUp()
		v.hear()
		switch v.ordered() {
		case orderSwitchover:
			return switchAsked
		case orderRestart:
			return nothingYet
		case orderReload: // what starts reads its config
			return nothingYet
		}
		switch {
		case changed:
			return nothingYet
		case held != nothingYet && !v.held():
			v.giveUp("it is not paused any more")
			return held
		}
		preferred = v.rival(preferred)
		select {
		case <-over.C:
			if ctx.Err() != nil { // where both are ready, chance decides: nothing is started only to be stopped
				return ending(ctx)
			}
			return nothingYet
		case <-ctx.Done():
			return ending(ctx)
		case <-preferred:
			return preferredBack
		case <-v.news.stir:
		}
	}
}

// handsAway tells which event the end of a run is by itself; nothingYet: verdict says what follows.
func handsAway(why error) event {
	switch {
	case errors.Is(why, errSwitch):
		return switchAsked
	case errors.Is(why, errPreferred):
		return preferredBack
	}
	return nothingYet
}

// afterwards is how programs are whose run has ended.
func afterwards(why error) condition {
	if errors.Is(why, unit.ErrChanged) || errors.Is(why, errRestart) {
		return rising
	}
	return backing
}

// errPaused says that nobody is to be promoted.
var errPaused = errors.New("the service is paused")

// fenceUnlessPaused fences whoever the breadcrumb names, and gives that up when the service is paused meanwhile.
func (v *service) fenceUnlessPaused(ctx context.Context, claim *election.Claim) (fencing.Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stirred := false
	var wg sync.WaitGroup
	wg.Go(func() {
		for !v.held() { // it may be known already
			select {
			case <-v.news.stir:
				stirred = true
			case <-ctx.Done():
				return
			}
		}
		cancel(errPaused)
	})
	fenced, err := v.fence(ctx, claim)
	if err != nil && errors.Is(context.Cause(ctx), errPaused) {
		err = errPaused
	}
	cancel(nil)
	wg.Wait()
	if stirred {
		poke(v.news.stir) // whoever comes next has not seen it
	}
	return fenced, err
}
