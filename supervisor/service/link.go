package service

import (
	"context"
	"errors"
	"time"

	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// How long the other nodes are given to say that they have no link either: they look twice a second, and have had one when that is told
// here. And how often it is looked whether one has.
const (
	othersSay  = 250 * time.Millisecond
	lookForAny = time.Second
)

// leaveCutOff ends the run, when an address has no link here, as soon as another node can take the service. Until then it goes on.
func (t *term) leaveCutOff(ctx context.Context) {
	v, run := t.v, t.run.programs
	if v.view.wellness.isCutOff() == "" || t.run.cutOff != nil && !wait.Closed(t.run.cutOff) {
		return
	}
	over := make(chan struct{})
	t.run.cutOff = over
	members := t.cand.Members
	t.helpers.Go(func() {
		defer close(over)
		for pause, told := othersSay, false; wait.For(ctx, pause); pause = lookForAny {
			why := v.view.wellness.isCutOff()
			if why == "" {
				return
			}
			rivaled, err := members.Rivaled(ctx)
			stays := "no other node can take the service"
			switch {
			case v.inbox.intents.control().Paused:
				stays = "the service is paused"
			case err != nil:
				stays = "it is not known whether another node can take the service"
			case rivaled:
				run.End(&unit.Unfit{Err: errors.New(why)})
				return
			}
			if !told {
				v.log.Warn("an address of the service has no link, and it stays here", "why", why, "stays", stays)
				told = true
			}
		}
	})
}
