package programs

import (
	"context"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// store is one connection to a program that keeps numbers.
type store interface {
	write(n int64) error
	// all returns the numbers in the order in which they were written.
	all() ([]int64, error)
	close()
}

const (
	answerWithin = time.Second
	atOnce       = 20_000 // how many numbers are read so soon, also on a busy machine
)

// ledger is a client that writes 1, 2, 3... to whichever host answers, each number once, and notes what was acknowledged.
type ledger struct {
	addrs []string
	dial  func(addr string) (store, error)
	stop  func() // ends the writing; it may be called again
	lost  int    // acknowledged writes that the last check did not find

	mu    sync.Mutex // guards what follows
	next  int64
	acked []int64
	last  time.Time     // of the newest acknowledgement
	where string        // it came from
	gap   time.Duration // the longest between two of them
}

// newLedger writes until the test ends.
func newLedger(t *testing.T, dial func(addr string) (store, error), addrs ...string) *ledger {
	t.Helper()
	l := &ledger{addrs: addrs, dial: dial}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			l.session(ctx, addrs[i%len(addrs)])
		}
	}()
	l.stop = func() { cancel(); <-done }
	t.Cleanup(l.stop)
	return l
}

// session writes through one connection for as long as it lasts.
func (l *ledger) session(ctx context.Context, addr string) {
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	s, err := l.dial(addr)
	if err != nil {
		<-again.C
		return
	}
	defer s.close()
	for ctx.Err() == nil {
		l.mu.Lock()
		l.next++
		n := l.next
		l.mu.Unlock()
		if s.write(n) != nil {
			return // whether it was done is not known: the number is not used again
		}
		l.mu.Lock()
		now := time.Now()
		if !l.last.IsZero() {
			l.gap = max(l.gap, now.Sub(l.last))
		}
		l.acked, l.last, l.where = append(l.acked, n), now, addr
		l.mu.Unlock()
		<-again.C
	}
}

// served waits until a write that was sent from now on is acknowledged by a host, and returns the longest time without any
// acknowledgement since the last call.
func (l *ledger) served(t *testing.T, addr string) (gap time.Duration) {
	t.Helper()
	l.mu.Lock()
	from := l.next
	l.mu.Unlock()
	kit.Until(t, soon, "a write is acknowledged by "+addr, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.where == addr && l.acked[len(l.acked)-1] > from+1
	})
	return l.longest()
}

// longest returns the longest time without any acknowledgement since it was last asked for.
func (l *ledger) longest() (gap time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gap, l.gap = l.gap, 0
	return gap
}

// count is how many writes were acknowledged.
func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// more waits until so many more writes are acknowledged.
func (l *ledger) more(t *testing.T, n int) {
	t.Helper()
	n += l.count()
	kit.Until(t, soon, "writes are acknowledged", func() bool { return l.count() >= n })
}

// quiet waits until no write has been acknowledged for a while.
func (l *ledger) quiet(t *testing.T, while time.Duration) {
	t.Helper()
	kit.Until(t, soon, "no write is acknowledged", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return time.Since(l.last) > while
	})
}

// check demands that all that was acknowledged before is there, and nothing twice or out of order.
func (l *ledger) check(t *testing.T, addr string) {
	t.Helper()
	l.mu.Lock()
	acked := l.acked
	l.mu.Unlock()
	var kept []int64
	var err error
	read := func() bool { // how soon it answers is the gaps' matter
		var s store
		if s, err = l.dial(addr); err != nil {
			return false
		}
		defer s.close()
		kept, err = s.all()
		return err == nil
	}
	if !kit.Reached(soon, read) {
		t.Fatal(err)
	}
	var lost []int64
	rest := acked
	for j, n := range kept {
		if j > 0 && n <= kept[j-1] {
			t.Fatalf("%d is kept after %d", n, kept[j-1])
		}
		for ; len(rest) > 0 && rest[0] <= n; rest = rest[1:] {
			if rest[0] < n {
				lost = append(lost, rest[0])
			}
		}
	}
	lost = append(lost, rest...)
	if l.lost = len(lost); l.lost > 0 {
		t.Fatalf("%d of %d acknowledged writes are lost, the first is %d; %d are kept", l.lost, len(acked), lost[0], len(kept))
	}
	t.Logf("%d writes acknowledged, %d kept", len(acked), len(kept))
}
