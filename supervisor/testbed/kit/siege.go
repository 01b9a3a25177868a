package kit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Siege is what strangers without a key do to a host's ports, all at once, as much of it as they can.
type Siege struct {
	HTTP    string // the port of the HTTP side; empty: they leave it alone
	Sources int    // from so many addresses of the host itself
	Hold    int    // so many connections from each that say nothing, or go on saying nothing
	Agent   string // the agent's port
	Garbage []byte // what they send there
	Notify  string // the socket that a program notifies
	Pause   time.Duration
}

// Spoils is how often they did what.
type Spoils struct{ Held, Guesses, Garbage, Notes atomic.Int64 }

func (s *Spoils) String() string {
	return fmt.Sprintf("%d connections held, %d guesses, %d pieces of garbage, %d notes", s.Held.Load(), s.Guesses.Load(), s.Garbage.Load(), s.Notes.Load())
}

// besieger is a siege at work.
type besieger struct {
	Siege
	spoils Spoils
	host   *Host
	stop   <-chan struct{}
	dials  chan dial
}

// Besiege goes on until stop is closed.
func (h *Host) Besiege(what Siege, stop <-chan struct{}) *Spoils {
	w := &besieger{Siege: what, host: h, stop: stop, dials: make(chan dial)}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(w.dialAll)
	}
	every := func(act func()) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					act()
					time.Sleep(what.Pause) // the load's own pace
				}
			}
		})
	}
	for n := range what.Sources {
		from := fmt.Sprintf("127.0.0.%d", 2+n)
		for i := range what.Hold {
			every(func() { w.hold(from, i) })
		}
		for range 4 {
			every(func() { w.guess(from) })
		}
	}
	if what.Agent != "" {
		for range 16 {
			every(func() { w.litter() })
		}
	}
	if what.Notify != "" {
		every(w.note)
	}
	wg.Wait()
	return &w.spoils
}

// holdings are how a connection is held: it says nothing, it never says its request to the end, it says it byte by byte, it has had an
// answer and is kept, and it follows what happens and does not read it.
var holdings = []string{"", "GET /active/x HTTP/1.1\r\n", "slowly", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"}

func (w *besieger) hold(from string, how int) {
	conn, err := w.dial(from, w.HTTP)
	if err != nil {
		time.Sleep(10 * time.Millisecond) // they have other things to do: when there is room again cannot be seen
		return
	}
	defer time.Sleep(5 * time.Millisecond) // the load's own pace
	defer conn.Close()
	w.spoils.Held.Add(1)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-w.stop:
			conn.Close()
		case <-ended:
		}
	}()
	switch text := holdings[how%len(holdings)]; text {
	case "slowly":
		for _, err := conn.Write([]byte("G")); err == nil; _, err = conn.Write([]byte("x")) {
			time.Sleep(200 * time.Millisecond) // the load's own pace
		}
	default:
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, conn) // until it is thrown out
	}
}

// guess tries tokens, as many over one connection as it may.
func (w *besieger) guess(from string) {
	conn, err := w.dial(from, w.HTTP)
	if err != nil {
		time.Sleep(10 * time.Millisecond) // as in hold
		return
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for n := 0; ; n++ {
		select {
		case <-w.stop:
			return
		default:
		}
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		_, err := fmt.Fprintf(conn, "POST /api/v1/services/%s/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer guess%d\r\nContent-Length: 0\r\n\r\n", "x", n)
		if err != nil {
			return
		}
		r, err := http.ReadResponse(answers, nil)
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, r.Body)
		if r.Body.Close(); err != nil {
			return
		}
		w.spoils.Guesses.Add(1)
	}
}

// litter sends garbage over a connection of its own.
func (w *besieger) litter() {
	conn, err := w.dial("", w.Agent)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write(w.Garbage); err == nil {
		w.spoils.Garbage.Add(1)
	}
}

// note tells a program's socket again and again what it has no business with.
func (w *besieger) note() {
	conn, err := net.Dial("unixgram", w.Notify)
	if err != nil {
		time.Sleep(10 * time.Millisecond) // as in hold
		return
	}
	defer conn.Close()
	for err == nil {
		select {
		case <-w.stop:
			return
		default:
		}
		_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err = io.WriteString(conn, "STOPPING=1\nSTATUS="+strings.Repeat("x", 3000)+"\nMAINPID=1\n"); err == nil {
			w.spoils.Notes.Add(1)
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil // the queue is full
		}
	}
}

// dial connects to one of the host's own ports from one of its own addresses, "" for any.
func (w *besieger) dial(from, port string) (net.Conn, error) {
	d := net.Dialer{Timeout: time.Second}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	done := make(chan dialled, 1)
	select {
	case w.dials <- dial{&d, "127.0.0.1:" + port, done}:
	case <-w.stop:
		return nil, net.ErrClosed
	}
	r := <-done
	return r.conn, r.err
}

type dial struct {
	dialer *net.Dialer
	to     string
	done   chan<- dialled
}

type dialled struct {
	conn net.Conn
	err  error
}

// dialAll dials for the others, with a thread that belongs to the host's network from then on, and ends with this.
func (w *besieger) dialAll() {
	runtime.LockOSThread()
	lost := w.host.join()
	for {
		select {
		case <-w.stop:
			return
		case d := <-w.dials:
			r := dialled{err: lost}
			if lost == nil {
				r.conn, r.err = d.dialer.Dial("tcp", d.to)
			}
			if r.err == nil {
				_ = r.conn.(*net.TCPConn).SetLinger(0) // no port is used up
			}
			d.done <- r
		}
	}
}

// join moves this thread to the host's network.
func (h *Host) join() error {
	if h.ns == "" {
		return nil
	}
	ns, err := os.Open(h.Network())
	if err != nil {
		return err
	}
	defer ns.Close()
	return unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
}
