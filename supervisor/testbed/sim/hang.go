package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"understudy/supervisor/service"
)

// In one of so many seeds a goroutine that decides for a service hangs now and then, as in a file on a dead disk, while the rest of its
// supervisor goes on.
const (
	hangsIn   = 4
	hangsFrom = 2
)

func (p *Plan) hanging() bool { return p.Seed%hangsIn == hangsFrom && !p.Calm }

// hangs adds such faults to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) hangs() {
	if !p.hanging() {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 17))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		for range r.IntN(3) {
			f := Fault{Kind: HangService, Node: r.IntN(p.Nodes), Active: r.IntN(4) > 0, N: r.IntN(1 << 16), At: drawn(r, e.Length)}
			e.Faults = append(e.Faults, f)
		}
		sortFaults(e.Faults)
	}
}

// hangsAt is what the goroutine says last: no other one says that.
func (f Fault) hangsAt() string { return hangsAt[f.N%len(hangsAt)] }

var hangsAt = []string{
	service.MomentRole, service.MomentRole, service.MomentRole, service.MomentCrashed, service.MomentCrashed, service.MomentAgain, service.MomentFencing, service.MomentStopping,
}

// counted is what the fault counts as. Each moment of a hang does for itself: one that never comes is noticed.
func (f Fault) counted() Kind {
	if f.Kind == HangService {
		return hangAt(f.hangsAt())
	}
	return f.Kind
}

func hangAt(moment string) Kind { return HangService + " at: " + Kind(moment) }

// Counted is what faults count as.
func Counted() (all []Kind) {
	for _, k := range Kinds() {
		if k != HangService {
			all = append(all, k)
			continue
		}
		for _, at := range slices.Compact(slices.Clone(hangsAt)) {
			all = append(all, hangAt(at))
		}
	}
	return all
}

// Planned counts the faults of a plan by what they count as.
func (p *Plan) Planned() map[Kind]int {
	all := map[Kind]int{}
	for _, e := range p.Episodes {
		for _, f := range e.Faults {
			all[f.counted()]++
		}
	}
	return all
}

// hang has the goroutine of the next service hang that comes to its moment. World.mu is held.
func (hf *hostFaults) hang(f Fault, n *node) {
	n.hangs.Store(&f)
	if f.N/16%2 == 0 { // so that its moment comes
		hf.killChildren(n.host)
	}
}

// hang lets the goroutine go no further, if its moment has come.
func (i *incarnation) hang(msg string) {
	n := i.node
	f := n.hangs.Load()
	if f == nil || f.hangsAt() != msg || !n.hangs.CompareAndSwap(f, nil) {
		return
	}
	n.w.mu.Lock()
	n.w.say("%s: a goroutine of supervisor %d hangs", n.name, i.number)
	n.w.nemesis.noteFault(f.counted())
	i.hung = true
	n.hung = append(n.hung, time.Now())
	n.w.mu.Unlock()
	for i.alive() {
		time.Sleep(n.w.plan.Timeout)
	}
}

// stuck ends the supervisor process, which has found that a service stands still.
func (i *incarnation) stuck(service string, stood time.Duration) {
	n := i.node
	w := n.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case n.inc != i:
	case !i.hung:
		w.check.broken("standstill", "%s: %s has not moved for %v, it is said, and nothing hangs", n.name, service, stood)
	case !i.mayLose(1): // that would be one death too many at a time
		w.after(w.plan.Timeout/10, func() { go i.stuck(service, stood) })
	default:
		w.say("%s: %s has not moved for %v, supervisor %d ends itself", n.name, service, stood, i.number)
		n.crash(true)
		w.after(time.Second, n.start)
	}
}
