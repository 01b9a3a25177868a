package unit

import (
	"context"
	"fmt"

	"understudy/supervisor/child/probe"
)

// watch checks the health, anew with each change of how, until the run has ended.
func (r *Run) watch(ctx context.Context) {
	for ctx.Err() == nil {
		checking, enough := context.WithCancel(ctx)
		through := make(chan struct{})
		go func() {
			defer close(through)
			r.check(checking)
		}()
		select {
		case <-r.changed:
		case <-ctx.Done():
		}
		enough()
		<-through
	}
}

// check ends the run when the health is gone.
func (r *Run) check(ctx context.Context) {
	r.mu.Lock()
	h := r.health
	r.mu.Unlock()
	programs, log, service := r.cfg.Conf.Programs, r.u.log, r.u.cfg.Service
	checker := r.checker(programs[len(programs)-1], h.TCP, h.HTTP, h.Exec)
	if checker == nil {
		return
	}
	if r.cfg.Adopt != nil {
		h.StartDelay = 0
	}
	cfg := probe.Config{StartDelay: h.StartDelay, Interval: h.Interval, Timeout: h.Timeout, Failures: h.Failures}
	err := probe.Watch(ctx, cfg, checker, func(report probe.Report) {
		said := ""
		if report.Err != nil {
			said = report.Err.Error()
		}
		if r.news(&r.said, said) {
			if report.Err == nil {
				log.Info("healthy again", "service", service)
			} else {
				log.Warn("the health check fails", "service", service, "failures", report.Failures, "of", h.Failures, "why", said)
			}
			r.cfg.Health(said)
		}
		if !report.Healthy && report.Failures >= h.Failures {
			r.end(fmt.Errorf("%w: %w", ErrUnhealthy, report.Err))
		}
	})
	if err != nil && ctx.Err() == nil {
		log.Error("the health check cannot go on", "service", service, "error", err)
	}
}

// news notes what is said now, and tells whether it is another thing than before.
func (r *Run) news(before *string, now string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := *before != now
	*before = now
	return changed
}
