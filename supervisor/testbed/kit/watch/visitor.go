package watch

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/supervisor/testbed/kit"
)

// Visitor asks one URL again and again, and notes whose answers it gets.
type Visitor struct {
	mu    sync.Mutex // guards what follows
	asked int
	from  string
	sent  int // the newest question that was answered
	last  time.Time
	gap   time.Duration
}

// visitWithin is how long a visitor waits for an answer.
const visitWithin = 200 * time.Millisecond

// NewVisitor asks until the test ends. The visitor is on a host; nil: where the test is.
func NewVisitor(tb testing.TB, url string, from *kit.Host) *Visitor {
	tb.Helper()
	v := &Visitor{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	transport := &http.Transport{DisableKeepAlives: true}
	if from != nil {
		dial := DialFrom(from)
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, visitWithin) // the client's time-out ends no dial, and each one has a thread
			defer cancel()
			return dial(ctx, network, addr)
		}
	}
	client := &http.Client{Timeout: visitWithin, Transport: transport}
	go func() {
		defer close(done)
		var asking sync.WaitGroup
		defer asking.Wait()
		for again := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; <-again.C {
			asking.Go(func() { v.ask(ctx, client, url) }) // one that is not answered delays no other
		}
	}()
	tb.Cleanup(func() { cancel(); <-done })
	return v
}

func (v *Visitor) ask(ctx context.Context, client *http.Client, url string) {
	v.mu.Lock()
	v.asked++
	n := v.asked
	v.mu.Unlock()
	text, err := Get(ctx, client, url)
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if !v.last.IsZero() {
		v.gap = max(v.gap, now.Sub(v.last))
	}
	v.last = now
	if n > v.sent {
		v.from, v.sent = text, n
	}
}

// Get returns the page, less the blanks around it.
func Get(ctx context.Context, client *http.Client, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	a, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", a.Status)
	}
	return strings.TrimSpace(string(text)), err
}

// Served waits until a question asked from now on is answered by a host; it returns the longest time without any answer
// since the last call.
func (v *Visitor) Served(tb testing.TB, h *kit.Host) (gap time.Duration) {
	tb.Helper()
	if !v.ServedWithin(2*kit.Soon, h) {
		tb.Fatalf("no visitor is answered by %s", h.Name)
	}
	return v.Longest()
}

// ServedWithin reports whether a question asked from now on is answered by a host within the limit.
func (v *Visitor) ServedWithin(limit time.Duration, h *kit.Host) bool {
	v.mu.Lock()
	asked := v.asked
	v.mu.Unlock()
	return kit.Reached(limit, func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.from == h.Name && v.sent > asked
	})
}

// Longest is the longest time without any answer since it was last asked for. One that still lasts counts.
func (v *Visitor) Longest() (gap time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	gap, v.gap = max(v.gap, time.Since(v.last)), 0
	return gap
}

// DialFrom opens connections in a host's network.
func DialFrom(h *kit.Host) func(ctx context.Context, network, addr string) (net.Conn, error) {
	type opened struct {
		net.Conn
		error
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		done := make(chan opened)
		go func() {
			runtime.LockOSThread() // and the thread ends with the goroutine
			var o opened
			file, err := os.Open(h.Network())
			if err == nil {
				err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
				file.Close()
			}
			if o.error = err; err == nil {
				o.Conn, o.error = (&net.Dialer{}).DialContext(ctx, network, addr)
			}
			done <- o
		}()
		o := <-done
		return o.Conn, o.error
	}
}
