package sim

import (
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const traceLength = 400

// trace keeps the last events in plain words, and the sum of all of them.
type trace struct {
	mu    sync.Mutex
	lines [traceLength]string
	count int
	sum   uint64
	every func(line string) // is told each line, unless nil
	over  atomic.Bool       // it takes no more
}

func newTrace() *trace { return &trace{} }

func (t *trace) add(at time.Duration, format string, args ...any) {
	if t.over.Load() {
		return
	}
	line := fmt.Sprintf("%12.6fs  ", at.Seconds()) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	_, _ = h.Write([]byte(line))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.every != nil {
		t.every(line)
	}
	t.lines[t.count%traceLength] = line
	t.count++
	t.sum = t.sum*1099511628211 + h.Sum64()
}

// last is the newest lines, in order.
func (t *trace) last(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for i := max(0, t.count-min(n, traceLength)); i < t.count; i++ {
		b.WriteString(t.lines[i%traceLength])
		b.WriteByte('\n')
	}
	return b.String()
}
