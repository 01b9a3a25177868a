package supervisor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"understudy/supervisor/child/probe"
)

// watch checks the unit's health, and ends its run when that is gone.
func (u *unit) watch(ctx context.Context, h Health) {
	checker := u.checker(u.conf.Programs[len(u.conf.Programs)-1], h.TCP, h.HTTP, h.Exec)
	if checker == nil {
		return
	}
	v := u.v
	if u.adopts != nil {
		h.StartDelay = 0
	}
	cfg := probe.Config{StartDelay: h.StartDelay, Interval: h.Interval, Timeout: h.Timeout, Failures: h.Failures}
	err := probe.Watch(ctx, cfg, checker, func(r probe.Report) {
		said := ""
		if r.Err != nil {
			said = r.Err.Error()
		}
		v.news.mu.Lock()
		changed := v.news.health != said
		v.news.mu.Unlock()
		if changed {
			if r.Err == nil {
				v.log.Info("healthy again", "service", v.name)
			} else {
				v.log.Warn("the health check fails", "service", v.name, "failures", r.Failures, "of", h.Failures, "why", said)
			}
			v.news.tell(func() { v.news.health = said })
		}
		if !r.Healthy && r.Failures >= h.Failures {
			u.fail(fmt.Errorf("%w: %w", errUnhealthy, r.Err))
		}
	})
	if err != nil && ctx.Err() == nil {
		v.log.Error("the health check cannot go on", "service", v.name, "error", err)
	}
}

var errUnhealthy = errors.New("unhealthy")

// What a member says of its health.
const (
	healthy   = "ok"
	starting  = "starting"
	ailing    = "failing"
	unfitness = "unfit"
	exhausted = "failed"
)

// healthOf is what is said while a unit starts: one that is ready at once is well at once.
func healthOf(s Service) string {
	slow := func(p Program) bool { return p.Oneshot || !reflect.DeepEqual(p.Ready, Ready{}) }
	if len(s.Hooks.OnActive.Command) > 0 || slices.ContainsFunc(s.Programs, slow) {
		return starting
	}
	return healthy
}

// hear takes up what the health checks have said.
func (v *service) hear() {
	v.news.mu.Lock()
	said := v.news.health
	paused := v.news.wishes.Control
	v.news.mu.Unlock()
	was, note := v.health, v.note
	switch {
	case said != "":
		v.health, v.note = ailing, said
	case v.health == ailing:
		v.health, v.note = healthy, ""
	}
	if said == "" {
		v.note = ""
		if paused.Paused {
			v.note = paused.Words()
		}
	}
	if now := paused.Words(); v.note != note && v.note == now && paused.Paused {
		v.log.Info("paused: it goes on here, and nobody else is promoted", "service", v.name, "why", now)
	} else if strings.HasPrefix(note, "paused") && !paused.Paused {
		v.log.Info("not paused any more", "service", v.name)
	}
	if v.health != was || v.note != note {
		v.say()
	}
}
