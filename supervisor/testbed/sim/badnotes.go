package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"understudy/supervisor/wait"
)

// In one of so many seeds, of those in which services do what outlives their processes, a host's disk fails for a while: what is to be
// undone cannot be noted, or read.
const (
	badNotesIn   = 24
	badNotesFrom = 7
)

// badNotes adds such faults to the episodes that are drawn. It has a stream of its own: the others are what they were.
func (p *Plan) badNotes() {
	if p.Seed%badNotesIn != badNotesFrom || p.Undo == 0 {
		return
	}
	r := rand.New(rand.NewPCG(p.Seed, 37))
	for i := range p.Episodes {
		e := &p.Episodes[i]
		if r.IntN(3) == 0 {
			continue
		}
		f := p.fault(r, BadNotes)
		f.At, f.For = drawn(r, e.Length), drawn(r, 4*p.Timeout)+drawn(r, 20*time.Second)
		e.Length = max(e.Length, f.At+f.For)
		kinds := []Kind{StopSupervisor, CrashSupervisor, FreezeSupervisor, PowerOff, CutLink, GiveOrder, BadProgram, KillGuardians, BadUndo}
		with := p.fault(r, pick(r, kinds...))
		with.Node, with.Active, with.Server, with.At = f.Node, f.Active, -1, max(0, f.At-f.For/8)+drawn(r, f.For)
		e.Length = max(e.Length, with.At+with.For)
		e.Faults = append(e.Faults, f, with)
		sortFaults(e.Faults)
	}
}

// Ways of a disk that fails.
const (
	diskFull  = iota // nothing can be written
	diskFails        // each touch is an error
	diskHangs        // none is answered
	diskWays
)

var diskNames = [...]string{"it is full", "each touch is an error", "it does not answer"}

// badDisk is a host's disk that fails. World.mu guards it.
type badDisk struct {
	way  int
	over chan struct{} // closed when it works again
	late []func()      // what is written then
}

var errDisk = errors.New("input/output error")

// diskAnswers is how long a disk that does not answer is waited for.
const diskAnswers = 10 * time.Second

// failDisk has a host's disk fail. World.mu is held, as it is at the end.
func (hf *hostFaults) failDisk(f Fault, n *node) (end func(), done bool) {
	h := n.host
	if h.disk != nil {
		return nil, false
	}
	bad := &badDisk{way: f.N % diskWays, over: make(chan struct{})}
	h.disk = bad
	hf.say("%v", f)
	return func() {
		hf.say("over: %v", f)
		h.disk = nil
		for _, write := range bad.late {
			write()
		}
		close(bad.over)
	}, true
}

// touch waits for the disk of a host, and tells why it cannot be read or, with write, be written. later is done when one that did not answer
// does again.
func (n notes) touch(ctx context.Context, write bool, later func()) error {
	if !n.by.pass() {
		return errCrashed
	}
	h := n.host
	h.w.mu.Lock()
	bad := h.disk
	if bad != nil && bad.way == diskHangs && later != nil {
		bad.late = append(bad.late, later)
	}
	h.w.mu.Unlock()
	switch {
	case bad == nil:
		return nil
	case bad.way == diskFull && !write:
		return nil
	case bad.way != diskHangs:
		return errDisk
	}
	limit := time.NewTimer(diskAnswers)
	defer limit.Stop()
	select {
	case <-bad.over:
	case <-limit.C:
		return fmt.Errorf("%w: waited for %v", wait.ErrNoAnswer, diskAnswers)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", wait.ErrNoAnswer, context.Cause(ctx))
	}
	if !n.by.pass() {
		return errCrashed
	}
	return nil
}
