//go:build simulation

package sim

import (
	"runtime"
	"slices"
	"testing/synctest"
	"time"
)

// Result is what one run came to.
type Result struct {
	Plan      *Plan
	Violation *Violation
	Episode   int // how many episodes were begun
	Trace     string
	Sum       uint64 // of the trace
	Events    int
	Virtual   time.Duration
	Faults    map[Kind]int
	Starts    int
	Doomed    int
	Cover     Coverage
	Slowest   time.Duration // until a service ran again after everything was healed
}

// run carries a plan out. It is called in a bubble of synctest, and stops at the first violation.
func run(p *Plan) *Result {
	w := newWorld(p)
	r := &Result{Plan: p, Faults: map[Kind]int{}, Cover: w.cover}
	w.mu.Lock()
	for _, n := range w.nodes {
		w.after(drawn(n.host.rng, p.Timeout/4), n.start)
	}
	w.mu.Unlock()
	w.progress(r)
	for _, e := range p.Episodes {
		if w.broken() {
			break
		}
		r.Episode++
		runtime.GC() // here, where everybody waits, it changes no order
		w.episode(e, r)
	}
	w.end()
	r.Violation, r.Virtual, r.Starts, r.Doomed = w.check.first, time.Since(w.began), w.check.starts, w.check.doomed
	r.Trace, r.Sum, r.Events = w.trace.last(traceLength), w.trace.sum, w.trace.count
	return r
}

func (w *world) broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.check.first != nil
}

// episode lets its faults happen, heals everything, and sees to it that the services run again.
func (w *world) episode(e Episode, r *Result) {
	began := time.Now()
	type act struct {
		at time.Duration
		do func()
	}
	var acts []act
	var pending []func()
	schedule := func(at time.Duration, do func()) {
		acts = append(acts, act{at, do})
		slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	}
	w.mu.Lock()
	w.quiet, w.check.calm = false, w.plan.Calm
	w.mu.Unlock()
	for _, f := range e.Faults {
		f.For = min(f.For, e.Length-f.At)
		schedule(f.At, func() {
			end, done := w.begin(f)
			if !done {
				return
			}
			r.Faults[f.Kind]++
			if end == nil {
				return
			}
			ended := false
			once := func() {
				if !ended {
					ended = true
					end()
				}
			}
			pending = append(pending, once)
			schedule(f.At+f.For, once)
		})
	}
	schedule(e.Length, func() {})
	for len(acts) > 0 && !w.broken() {
		next := acts[0]
		acts = acts[1:]
		time.Sleep(time.Until(began.Add(next.at)))
		synctest.Wait()
		next.do()
	}
	for _, end := range pending {
		end()
	}
	w.heal()
	w.progress(r)
	w.mu.Lock()
	if w.check.first == nil {
		w.check.strays()
	}
	w.mu.Unlock()
	for spent := time.Duration(0); spent < e.Rest && !w.broken(); spent += w.plan.Timeout {
		time.Sleep(min(w.plan.Timeout, e.Rest-spent))
	}
}

// heal ends what no fault ends by itself.
func (w *world) heal() {
	for _, s := range w.zk.servers {
		s.Forget()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quiet = true
	for _, n := range w.nodes {
		n.traps = nil
		n.armed.Store(0)
	}
	for _, h := range w.hosts {
		h.powerOn()
	}
	for _, n := range w.nodes {
		if n.inc != nil {
			n.inc.asked = false // one that is still stopping is started again
		}
		n.start()
	}
	w.say("all is healed")
}

// patience is how long it may take until a service runs after everything was healed: P6.
func (w *world) patience() time.Duration {
	p := w.plan
	return 2*p.Timeout + 2*p.Tick + 2*p.Grace + p.Rejoin + p.StopTimeout + time.Duration(p.SyncLimit+4)*p.Tick + 25*time.Second
}

// progress waits until all services run.
func (w *world) progress(r *Result) {
	began := time.Now()
	for !w.broken() {
		idle := ""
		w.mu.Lock()
		for _, s := range w.plan.services() {
			if !w.check.running(s) {
				idle = s
			}
		}
		took := time.Since(began)
		if idle != "" && took > w.patience() {
			w.check.broken("P6", "%s did not run within %v after everything was healed", idle, took)
		}
		w.mu.Unlock()
		if idle == "" {
			r.Slowest = max(r.Slowest, took)
			return
		}
		time.Sleep(w.plan.Timeout / 20)
	}
}

// end takes the world down.
func (w *world) end() {
	w.mu.Lock()
	w.check.calm = false
	w.over = true
	for _, h := range w.hosts {
		h.powerOff()
	}
	for _, n := range w.nodes {
		for _, i := range n.all {
			i.stop()
		}
	}
	w.mu.Unlock()
	w.zk.close()
	w.wait.Wait()
}
