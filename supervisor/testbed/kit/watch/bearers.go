package watch

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// Bearers watches which of two hosts has an address. A host without power has none.
type Bearers struct {
	addr  string
	hosts []string // where the kernel shows a host's addresses

	mu    sync.Mutex // guards what follows
	looks int
	last  time.Time // of the newest look
	twice bool      // it showed the address on both hosts
	both  Both
}

// Both is how often, since when and how long in all two hosts had an address.
type Both struct {
	Times int
	First time.Time
	Long  time.Duration
}

// NewBearers watches until the test ends.
func NewBearers(tb testing.TB, addr string, hosts ...*kit.Host) *Bearers {
	tb.Helper()
	w, table, own := &Bearers{addr: "-- " + addr + "\n"}, "fib_trie", func(h *kit.Host) string { return "-- " + h.Addr + "\n" }
	if ip := netip.MustParseAddr(addr).As16(); strings.Contains(addr, ":") {
		w.addr, table, own = hex.EncodeToString(ip[:]), "if_inet6", func(*kit.Host) string { return " eth0\n" }
	}
	for _, h := range hosts {
		stay := h.Command("sleep", "1000") // a process that is in the host's network, and dies with the host
		must.OK(tb, stay.Start())
		tb.Cleanup(func() {
			_ = stay.Process.Kill()
			_ = stay.Wait() // it was killed
		})
		file := fmt.Sprintf("/proc/%d/net/%s", stay.Process.Pid, table)
		kit.Until(tb, kit.Soon, h.Name+" shows its addresses", func() bool {
			text, _ := os.ReadFile(file)
			return strings.Contains(string(text), own(h))
		})
		w.hosts = append(w.hosts, file)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for again := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-again.C {
			w.look()
		}
	}()
	tb.Cleanup(func() { cancel(); <-done })
	return w
}

// look takes the first host's word only if it says the same before and after the second's: the address may be moving.
func (w *Bearers) look() {
	both := w.Has(0) && w.Has(1) && w.Has(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if both && w.twice {
		w.both.Long += now.Sub(w.last)
	}
	if both && !w.twice {
		w.both.Times++
	}
	if both && w.both.First.IsZero() {
		w.both.First = now
	}
	w.looks, w.last, w.twice = w.looks+1, now, both
}

// Has reports whether a host, by its place among the two, has the address.
func (w *Bearers) Has(i int) bool {
	text, _ := os.ReadFile(w.hosts[i]) // a look that fails shows nothing
	return strings.Contains(string(text), w.addr)
}

// Both is what was seen so far, in so many looks.
func (w *Bearers) Both() (both Both, looks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.both, w.looks
}
