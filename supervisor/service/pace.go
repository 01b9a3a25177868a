package service

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"time"
)

// pace shows other goroutines whether the one that serves moves. A wait for something outside of it is declared; all else is work, of which
// no step takes long.
type pace struct {
	moves     atomic.Int64 // grows with each step of the role machine, and at the begin and the end of each wait
	patience  atomic.Int64 // how long the present wait may take; 0: it works
	goroutine atomic.Int64 // its number in stack traces
}

const (
	// endless waits are those for a lock, an order, a program's end, or ZooKeeper, and those whose methods have timeouts of their own.
	endless = time.Duration(math.MaxInt64)
	// windUp bounds the wait for helpers that were told to end: what they have begun has limits, the longest is that of a command's death.
	windUp = time.Minute
)

// set begins the next thing. A reader who sees the new patience sees that it has moved, too.
func (p *pace) set(patience time.Duration) {
	p.moves.Add(1)
	p.patience.Store(int64(patience))
}

// wait says that the goroutine waits, until the returned function is called.
func (p *pace) wait(atMost time.Duration) (over func()) {
	p.set(atMost)
	return func() { p.set(0) }
}

// serves notes which goroutine it is.
func (p *pace) serves() {
	var id int64
	top := make([]byte, 64)
	_, _ = fmt.Sscanf(string(top[:runtime.Stack(top, false)]), "goroutine %d ", &id)
	p.goroutine.Store(id)
}

// Pace returns how often the service has moved, and how long its present wait may take. It is safe.
func (v *Service) Pace() (moves int64, patience time.Duration) {
	patience = time.Duration(v.pace.patience.Load()) // before moves: see set
	return v.pace.moves.Load(), patience
}

// stackRoom is how much of the stacks is told.
const stackRoom = 16 << 10

// Stack is where the goroutine that serves is, and then where others are, as far as there is room. It is safe.
func (v *Service) Stack() string {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 2) // a Buffer does not fail
	first := fmt.Appendf(nil, "goroutine %d ", v.pace.goroutine.Load())
	var own, others []byte
	for _, one := range bytes.SplitAfter(all.Bytes(), []byte("\n\n")) {
		if bytes.HasPrefix(one, first) {
			own = one
		} else if len(others) < stackRoom {
			others = append(others, one...)
		}
	}
	text := append(bytes.Clone(own), others...)
	return string(text[:min(len(text), stackRoom)])
}
