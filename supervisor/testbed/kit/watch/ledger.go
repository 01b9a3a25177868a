package watch

import (
	"context"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// Store is one connection to a program that keeps numbers.
type Store interface {
	Put(n int64) error
	// All returns the numbers in the order in which they were written.
	All() ([]int64, error)
	Close() error
}

const (
	// AnswerWithin is how long a client waits for an answer.
	AnswerWithin = time.Second
	atOnce       = 20_000 // how many numbers are read so soon, also on a busy machine
)

// Ledger is a client that writes 1, 2, 3... to whichever host answers, each number once, and notes what was acknowledged.
type Ledger struct {
	addrs []string
	dial  func(addr string) (Store, error)
	Stop  func() // ends the writing; it may be called again
	Lost  int    // acknowledged writes that the last look at a copy did not find

	mu    sync.Mutex // guards what follows
	next  int64
	acked []int64
	last  time.Time     // of the newest acknowledgement
	where string        // it came from
	gap   time.Duration // the longest between two of them
}

// NewLedger writes until the test ends.
func NewLedger(tb testing.TB, dial func(addr string) (Store, error), addrs ...string) *Ledger {
	tb.Helper()
	l := &Ledger{addrs: addrs, dial: dial}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			l.session(ctx, addrs[i%len(addrs)])
		}
	}()
	l.Stop = func() { cancel(); <-done }
	tb.Cleanup(l.Stop)
	return l
}

// session writes through one connection for as long as it lasts.
func (l *Ledger) session(ctx context.Context, addr string) {
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	s, err := l.dial(addr)
	if err != nil {
		<-again.C
		return
	}
	defer s.Close()
	for ctx.Err() == nil {
		l.mu.Lock()
		l.next++
		n := l.next
		l.mu.Unlock()
		if s.Put(n) != nil {
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

// Sent is the number of the newest write.
func (l *Ledger) Sent() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// AckedBy is who acknowledged the newest write, if that is a later one than the given, and was acknowledged within the last second.
func (l *Ledger) AckedBy(after int64) (addr string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.where, len(l.acked) > 0 && l.acked[len(l.acked)-1] > after && time.Since(l.last) < time.Second
}

// Served waits until a write that was sent from now on is acknowledged by a host, and returns the longest time without any
// acknowledgement since the last call.
func (l *Ledger) Served(tb testing.TB, addr string) (gap time.Duration) {
	tb.Helper()
	from := l.Sent()
	kit.Until(tb, 2*kit.Soon, "a write is acknowledged by "+addr, func() bool {
		now, ok := l.AckedBy(from + 1)
		return ok && now == addr
	})
	return l.Longest()
}

// Longest is the longest time without any acknowledgement since it was last asked for.
func (l *Ledger) Longest() (gap time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gap, l.gap = l.gap, 0
	return gap
}

// Count is how many writes were acknowledged.
func (l *Ledger) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// More waits until so many more writes are acknowledged.
func (l *Ledger) More(tb testing.TB, n int) {
	tb.Helper()
	n += l.Count()
	kit.Until(tb, 2*kit.Soon, "writes are acknowledged", func() bool { return l.Count() >= n })
}

// Quiet waits until no write has been acknowledged for a while.
func (l *Ledger) Quiet(tb testing.TB, while time.Duration) {
	tb.Helper()
	kit.Until(tb, 2*kit.Soon, "no write is acknowledged", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return time.Since(l.last) > while
	})
}

// Check demands that all that was acknowledged before is there, and nothing twice or out of order.
func (l *Ledger) Check(tb testing.TB, addr string) {
	tb.Helper()
	lost, acked, kept := l.Missing(tb, addr)
	if len(lost) > 0 {
		tb.Fatalf("%d of %d acknowledged writes are lost, the first is %d; %d are kept", len(lost), acked, lost[0], kept)
	}
	tb.Logf("%d writes acknowledged, %d kept", acked, kept)
}

// Missing is which of the writes that were acknowledged before are not there. It demands that none is there twice or out of order.
func (l *Ledger) Missing(tb testing.TB, addr string) (lost []int64, acked, kept int) {
	tb.Helper()
	l.mu.Lock()
	rest := l.acked
	l.mu.Unlock()
	acked = len(rest)
	var there []int64
	var err error
	read := func() bool { // how soon it answers is the gaps' matter
		var s Store
		if s, err = l.dial(addr); err != nil {
			return false
		}
		defer s.Close()
		there, err = s.All()
		return err == nil
	}
	if !kit.Reached(2*kit.Soon, read) {
		tb.Fatal(err)
	}
	for j, n := range there {
		if j > 0 && n <= there[j-1] {
			tb.Fatalf("%d is kept after %d", n, there[j-1])
		}
		for ; len(rest) > 0 && rest[0] <= n; rest = rest[1:] {
			if rest[0] < n {
				lost = append(lost, rest[0])
			}
		}
	}
	lost = append(lost, rest...)
	l.Lost = len(lost)
	return lost, acked, len(there)
}
