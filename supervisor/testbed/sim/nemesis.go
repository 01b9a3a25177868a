package sim

import (
	"slices"
	"time"
)

// nemesis lets the faults of a plan happen.
type nemesis struct {
	*world
	hosts     hostFaults
	links     linkFaults
	servers   serverFaults
	strangers stranger

	faults map[Kind]int  // that have happened; World.mu guards the fields below
	newest time.Time     // when the newest happened
	calm   time.Duration // of long times between two
}

// hostFaults are those of hosts, supervisors and guardians. World.mu guards it.
type hostFaults struct {
	*world
	waylaid  map[string][]Fault // by service: what is to happen when somebody is fencing, or stops
	upgraded time.Time          // when an upgrade was ordered last
	unfenced bool               // no power switch answers
}

// lieInWait keeps a fault for when a service's next supervisor begins to fence, or to stop.
func (hf *hostFaults) lieInWait(service string, f Fault) {
	hf.waylaid[service] = append(hf.waylaid[service], f)
}

// sprung is the fault that has waited for this, if there is one.
func (hf *hostFaults) sprung(service string, stopping bool) (f Fault, ok bool) {
	waiting := hf.waylaid[service]
	n := slices.IndexFunc(waiting, func(f Fault) bool { return (f.Kind == DeleteInStopping) == stopping })
	if n < 0 {
		return f, false
	}
	f = waiting[n]
	hf.waylaid[service] = slices.Delete(waiting, n, n+1)
	return f, true
}

// linkFaults are those of what lies between hosts and servers.
type linkFaults struct {
	*world
	undo []func() // ends of faults that a trap began; World.mu guards it
}

// endLater has a fault end when all is healed, unless it ended before.
func (lf *linkFaults) endLater(end func()) { lf.undo = append(lf.undo, end) }

// unended is the ends of faults that nobody else ends.
func (lf *linkFaults) unended() []func() {
	undo := lf.undo
	lf.undo = nil
	return undo
}

// serverFaults are those of the ensemble, and of its data.
type serverFaults struct {
	*world
	outages int   // how often it is out of sight now; World.mu guards it, and newest
	newest  int64 // the newest election of a leader before data was lost, whatever data there was
}

// stranger is a client without credentials.
type stranger struct {
	*world
	kept []keeping
}

func newNemesis(w *world) nemesis {
	return nemesis{
		world: w, hosts: hostFaults{world: w, waylaid: map[string][]Fault{}}, links: linkFaults{world: w}, servers: serverFaults{world: w}, strangers: stranger{world: w},
		faults: map[Kind]int{}, newest: time.Now(),
	}
}

// noteFault counts a fault, and the calm before it. World.mu is held.
func (ne *nemesis) noteFault(k Kind) {
	ne.faults[k]++
	if calm := time.Since(ne.newest); calm >= longCalm {
		ne.calm += calm
	}
	ne.newest = time.Now()
}

// longCalm is a time without a new fault that counts as a long one.
const longCalm = 10 * time.Minute

func (ne *nemesis) count(k Kind) {
	ne.mu.Lock()
	defer ne.mu.Unlock()
	ne.noteFault(k)
}
