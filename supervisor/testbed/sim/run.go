package sim

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"sync/atomic"
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
	Calm      time.Duration // spent in long stretches without a new fault
	Faults    map[Kind]int
	Starts    int
	Doomed    int
	Resets    int // by watchdogs
	Leftovers int // of which a breadcrumb told
	Kept      int // programs that outlasted their session, with their lock
	Dropped   int // those that could have, and ended
	Cover     Coverage
	Slowest   time.Duration // until a service ran again after everything was healed
}

// course is the episodes of a run, one after the other.
type course struct {
	*world
	passed atomic.Int64 // grows while virtual time does

	quiet bool // no process ends by itself; world.mu guards it, and over
	over  bool
}

// run carries a plan out. It is called in a bubble of synctest, and stops at the first violation.
func run(p *Plan) *Result {
	w := newWorld(p)
	r := &Result{Plan: p, Faults: w.nemesis.faults, Cover: w.check.tally.cover}
	w.mu.Lock()
	for _, n := range w.nodes {
		w.after(drawn(n.host.rng, p.Timeout/4), n.start)
	}
	w.copies.writes()
	w.mu.Unlock()
	w.course.countTime()
	w.course.progress(r)
	for _, e := range p.Episodes {
		if w.broken() {
			break
		}
		r.Episode++
		synctest.Wait()
		collect()
		w.course.episode(e, r)
	}
	w.course.end()
	r.Calm = w.nemesis.calm
	r.Violation, r.Virtual, r.Starts, r.Doomed, r.Resets = w.check.first, time.Since(w.began), w.check.tally.starts, w.check.tally.doomed, w.check.watchdogs.resets
	r.Leftovers = w.check.tally.leftovers
	r.Kept, r.Dropped = w.check.tally.kept, w.check.tally.dropped
	r.Trace, r.Sum, r.Events = w.trace.last(traceLength), w.trace.sum, w.trace.count
	return r
}

// countTime shows that time passes, to whoever watches from outside of it.
func (co *course) countTime() {
	co.passed.Add(1)
	co.mu.Lock()
	defer co.mu.Unlock()
	if !co.over {
		time.AfterFunc(co.plan.Timeout, co.countTime)
	}
}

// collect frees memory when there is much to free. Nobody else may have anything to do then: how far others came meanwhile
// would depend on real time.
func collect() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	if metrics.Read(sample); sample[0].Value.Uint64() > 64<<20 {
		runtime.GC()
	}
}

func (w *world) broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.check.first != nil
}

// episode lets its faults happen, heals everything, and sees to it that the services run again.
func (co *course) episode(e Episode, r *Result) {
	co.nemesis.strangers.unhaunt()
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
	co.mu.Lock()
	co.quiet, co.check.calm = false, co.plan.Calm
	co.mu.Unlock()
	for _, f := range e.Faults {
		f.For = min(f.For, e.Length-f.At)
		schedule(f.At, func() {
			end, done := co.nemesis.begin(f)
			if !done {
				return
			}
			if !f.Kind.waits() {
				co.nemesis.count(f.Kind)
			}
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
	for len(acts) > 0 && !co.broken() {
		next := acts[0]
		acts = acts[1:]
		co.idle(time.Until(began.Add(next.at)))
		next.do()
	}
	for _, end := range pending {
		end()
	}
	co.heal()
	co.progress(r)
	co.mu.Lock()
	if co.check.first == nil {
		co.check.orphans.strays()
	}
	co.check.restBegins()
	co.mu.Unlock()
	co.idle(e.Rest)
	co.mu.Lock()
	if co.check.first == nil {
		co.check.rested(e.Rest)
	}
	co.mu.Unlock()
	if co.plan.Drills && e.Rest >= co.patience() && !co.broken() {
		co.drills.hold()
		co.progress(r)
	}
	if co.plan.Seen != "" && e.Rest >= co.patience() && !co.broken() {
		co.drills.hides()
		co.progress(r)
	}
}

// idle lets time pass until nobody has anything to do at its end. It is where memory is collected: that changes no order then.
func (w *world) idle(d time.Duration) {
	for {
		part := min(d, 10*w.plan.Timeout)
		time.Sleep(part)
		synctest.Wait()
		if d -= part; d <= 0 || w.broken() {
			return
		}
		collect()
	}
}

// quieten says whether processes end by themselves from now on. World.mu is held.
func (co *course) quieten(quiet bool) { co.quiet = quiet }

// heal ends what no fault ends by itself.
func (co *course) heal() {
	for _, s := range co.zk.servers {
		s.Forget()
	}
	co.mu.Lock()
	co.quiet = true
	clear(co.nemesis.hosts.waylaid)
	for _, n := range co.nodes {
		n.traps = nil
		n.armed.Store(0)
		n.hangs.Store(nil)
	}
	undo := co.nemesis.links.unended()
	co.mu.Unlock()
	for _, end := range undo { // the servers have a lock of their own, under which they tell of what they do
		end()
	}
	co.mu.Lock()
	defer co.mu.Unlock()
	for _, h := range co.hosts {
		h.powerOn()
	}
	for _, n := range co.nodes {
		n.comeBack()
	}
	co.say("all is healed")
}

// patience is how long it may take until a service runs after everything was healed: P6.
func (w *world) patience() time.Duration {
	p := w.plan
	promised := time.Duration(0)
	if p.outages() { // what was promised before, and whoever rests since he was not asked
		promised = 2*p.longest() + p.Rejoin
	}
	if p.hanging() { // until it is noticed, at the latest in a stop
		promised += time.Minute + time.Duration(p.Programs)*30*time.Second + 25*p.longest()
	}
	if p.forgetful() { // until another session is tried
		promised += 15*time.Second + p.longest()
	}
	if p.rewound() { // until the leader was restarted often enough, and tokens grow
		promised += 30*time.Second + 2*p.longest()
	}
	return promised + p.deviceTakes() + p.resolving() + p.undoing() + 4*p.Backoff + 2*p.longest() + 2*p.Tick + 2*p.delay() + p.Rejoin + p.stopping() + time.Duration(p.SyncLimit+4)*p.Tick + 25*time.Second
}

// progress waits until all services run.
func (co *course) progress(r *Result) {
	began, vouched, ran := time.Now(), time.Time{}, time.Duration(0)
	for !co.broken() {
		idle := ""
		co.operator.putRight()
		co.mu.Lock()
		for _, s := range co.plan.services() {
			if !co.check.running(s) || co.check.services[s].paused {
				idle = s
			}
		}
		took := time.Since(began)
		if idle != "" {
			ran = took
		}
		late := took > co.patience()/2
		if idle != "" && took > co.patience() {
			co.check.broken("P6", "%q did not run within %v after everything was healed", idle, took)
		}
		co.mu.Unlock()
		if idle != "" && late {
			co.operator.letCount(idle)
			if time.Since(vouched) > co.plan.Timeout && !co.plan.obedient() {
				vouched = time.Now()
				co.operator.vouch(idle)
			}
		}
		if idle == "" {
			r.Slowest = max(r.Slowest, ran)
			return
		}
		time.Sleep(co.plan.Timeout / 20)
	}
}

// end takes the world down.
func (co *course) end() {
	co.mu.Lock()
	co.check.calm = false
	co.over = true
	co.trace.over.Store(true)
	for _, h := range co.hosts {
		h.powerOff()
	}
	for _, n := range co.nodes {
		for _, i := range n.all {
			i.stop()
		}
	}
	co.mu.Unlock()
	co.zk.close()
	co.wait.Wait()
	time.Sleep(time.Minute) // threads that wake late from a freeze, and that nobody waits for, find out that they are dead
}
