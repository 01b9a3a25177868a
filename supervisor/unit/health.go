package unit

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"understudy/supervisor/child/probe"
	"understudy/supervisor/config"
	"understudy/supervisor/wait"
)

// watch checks the programs of a run: their health, and their cgroups.
type watch struct {
	r       *Run
	changed chan struct{} // capacity 1: health has changed

	telling sync.Mutex  // held while Astray is told
	lost    atomic.Bool // a process in another cgroup is none that we started: only the tree's death ends it

	mu     sync.Mutex         // guards the fields below
	health config.HealthCheck // as it is in force
	said   string             // the newest check's result
	astray string             // which processes are in other cgroups
}

// reconfigure changes the health check.
func (w *watch) reconfigure(h config.HealthCheck) {
	w.mu.Lock()
	changed := !reflect.DeepEqual(w.health, h)
	w.health = h
	w.mu.Unlock()
	if changed {
		wait.Poke(w.changed)
	}
}

// checkUntilEnd checks the health until the run has ended.
func (w *watch) checkUntilEnd(ctx context.Context) {
	for ctx.Err() == nil {
		checking, enough := context.WithCancel(ctx)
		through := make(chan struct{})
		go func() {
			defer close(through)
			w.check(checking)
		}()
		select {
		case <-w.changed:
		case <-ctx.Done():
		}
		enough()
		<-through
	}
}

// check ends the run when the programs are unhealthy.
func (w *watch) check(ctx context.Context) {
	w.mu.Lock()
	h := w.health
	w.mu.Unlock()
	r, log, service := w.r, w.r.u.log, w.r.u.cfg.Service
	checker := r.checker(r.cfg.Conf.Checked(), h.TCP, h.HTTP, h.Exec)
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
		if w.news(&w.said, said) {
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
		log.Error("the health check cannot continue", "service", service, "error", err)
	}
}

// news notes a check's result, and reports whether it has changed.
func (w *watch) news(before *string, now string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := *before != now
	*before = now
	return changed
}

// ownAnswer is a check that another program on this host cannot pass in the place of ours, as far as that shows.
type ownAnswer struct {
	probe.Checker
	address string
	// When the programs were started; 0: not known, or it was looked who answers: that walks through all processes.
	since time.Duration
	who   func(address string, since time.Duration) string // probe.Stranger
}

// Check is the check, and after it has passed a look at who answered.
func (a *ownAnswer) Check(ctx context.Context) error {
	if err := a.Checker.Check(ctx); err != nil || a.since == 0 {
		return err
	}
	if who := a.who(a.address, a.since); who != "" {
		return answeredBy(a.address, who)
	}
	a.since = 0
	return nil
}

// addressOf is the host and port of a URL.
func addressOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return u.Host
}
