//go:build simulation

package sim

import (
	"encoding/binary"
	"errors"
	"time"

	"understudy/election/jute"
)

var errNoStonith = errors.New("the power switch does not answer")

// moment is a place in a supervisor's doing where a fault is most telling.
type moment int

const (
	beforeFork  moment = iota // between the last look at the lease and the fork
	afterFork                 // the child lives, and nobody knows
	beforeKill                // a tree is about to be killed
	afterKill                 // its death is proved, and nobody knows
	beforeWrite               // a transaction is about to be sent
	afterWrite                // it is sent, and the answer not read
	moments
)

var momentNames = [...]string{
	"before it forks the child", "after it forked the child", "before it kills a tree", "after it killed a tree", "before it sends a transaction",
	"after it sent a transaction",
}

// trap freezes or kills a supervisor at a moment.
type trap struct {
	at     moment
	freeze time.Duration // 0: it is killed
	again  time.Duration // after that a killed one is started again
}

// trap springs what waits for this moment.
func (i *incarnation) trap(at moment, frame []byte) {
	n := i.node
	if n.armed.Load() == 0 {
		return
	}
	if at >= beforeWrite && (len(frame) < 12 || jute.Op(binary.BigEndian.Uint32(frame[8:])) != jute.OpMulti) {
		return
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	if n.inc != i || !i.running() || !i.mayLose(1) {
		return
	}
	for k, t := range n.traps {
		if t.at != at {
			continue
		}
		n.traps = append(n.traps[:k:k], n.traps[k+1:]...)
		n.armed.Add(-1)
		n.w.say("%s: trap %s", n.name, momentNames[at])
		if t.freeze > 0 {
			i.halt(t.freeze)
			return
		}
		n.w.say("%s: supervisor %d is killed", n.name, i.number)
		n.crash(true)
		n.w.after(t.again, n.start)
		return
	}
}
