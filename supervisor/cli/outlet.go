package cli

import (
	"io"
	"sync"
	"time"
)

// outlet writes in a goroutine beside, so that who logs never waits for who reads: a stopped `| tee`, a log driver that blocks, a
// journal that hangs. What finds no room is dropped, and counted.
type outlet struct {
	to      io.Writer
	dropped func(lines int) // is told once there is room again

	mu    sync.Mutex // guards the fields below
	lines [][]byte
	size  int
	lost  int
	busy  bool       // a goroutine writes
	gone  *sync.Cond // a line is written
}

// roomForLines is how much waits to be written, at most.
const roomForLines = 1 << 20

func newOutlet(to io.Writer) *outlet {
	o := &outlet{to: to}
	o.gone = sync.NewCond(&o.mu)
	return o
}

// Write takes a line, or drops it. It never fails.
func (o *outlet) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size+len(line) > roomForLines || o.lost > 0 {
		o.lost++
		return len(line), nil
	}
	o.lines, o.size = append(o.lines, append([]byte(nil), line...)), o.size+len(line)
	if !o.busy {
		o.busy = true
		go o.run()
	}
	return len(line), nil
}

// run writes until nothing is left.
func (o *outlet) run() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.lines) > 0 {
		line := o.lines[0]
		o.mu.Unlock()
		_, _ = o.to.Write(line) // nowhere is left to tell of it
		o.mu.Lock()
		o.lines, o.size = o.lines[1:], o.size-len(line)
		o.gone.Broadcast()
		if lost := o.lost; len(o.lines) == 0 && lost > 0 {
			o.lost = 0
			o.mu.Unlock()
			o.dropped(lost)
			o.mu.Lock()
		}
	}
	o.busy = false
}

// lastWords is how long the end of the process, or its next image, waits for what is not written yet.
const lastWords = time.Second

func (o *outlet) flush() {
	expired := false
	limit := time.AfterFunc(lastWords, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		expired = true
		o.gone.Broadcast()
	})
	defer limit.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.lines) > 0 && !expired {
		o.gone.Wait()
	}
}
