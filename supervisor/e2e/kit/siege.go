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

// Besiege goes on until stop is closed.
func (h *Host) Besiege(what Siege, stop <-chan struct{}) *Spoils {
	spoils := new(Spoils)
	var wg sync.WaitGroup
	every := func(act func()) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					act()
					time.Sleep(what.Pause)
				}
			}
		})
	}
	for n := range what.Sources {
		from := fmt.Sprintf("127.0.0.%d", 2+n)
		for i := range what.Hold {
			every(func() { h.hold(from, what.HTTP, i, spoils, stop) })
		}
		for range 4 {
			every(func() { h.guess(from, what.HTTP, spoils, stop) })
		}
	}
	if what.Agent != "" {
		for range 16 {
			every(func() { h.litter(what.Agent, what.Garbage, spoils) })
		}
	}
	if what.Notify != "" {
		every(func() { note(what.Notify, spoils, stop) })
	}
	wg.Wait()
	return spoils
}

// holdings are how a connection is held: it says nothing, it never says its request to the end, it says it byte by byte, it has had an
// answer and is kept, and it follows what happens and does not read it.
var holdings = []string{"", "GET /active/x HTTP/1.1\r\n", "slowly", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"}

func (h *Host) hold(from, port string, how int, spoils *Spoils, stop <-chan struct{}) {
	conn, err := h.dial(from, port)
	if err != nil {
		time.Sleep(10 * time.Millisecond) // they have other things to do
		return
	}
	defer conn.Close()
	spoils.Held.Add(1)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-stop:
			conn.Close()
		case <-ended:
		}
	}()
	switch text := holdings[how%len(holdings)]; text {
	case "slowly":
		for _, err := conn.Write([]byte("G")); err == nil; _, err = conn.Write([]byte("x")) {
			time.Sleep(200 * time.Millisecond)
		}
	default:
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, conn) // until it is thrown out
	}
}

// guess tries tokens, as many over one connection as it may.
func (h *Host) guess(from, port string, spoils *Spoils, stop <-chan struct{}) {
	conn, err := h.dial(from, port)
	if err != nil {
		time.Sleep(10 * time.Millisecond)
		return
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for n := 0; ; n++ {
		select {
		case <-stop:
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
		spoils.Guesses.Add(1)
	}
}

// litter sends garbage over a connection of its own.
func (h *Host) litter(port string, garbage []byte, spoils *Spoils) {
	conn, err := h.dial("", port)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write(garbage); err == nil {
		spoils.Garbage.Add(1)
	}
}

// note tells a program's socket again and again what it has no business with.
func note(socket string, spoils *Spoils, stop <-chan struct{}) {
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		time.Sleep(10 * time.Millisecond)
		return
	}
	defer conn.Close()
	for err == nil {
		select {
		case <-stop:
			return
		default:
		}
		_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err = io.WriteString(conn, "STOPPING=1\nSTATUS="+strings.Repeat("x", 3000)+"\nMAINPID=1\n"); err == nil {
			spoils.Notes.Add(1)
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil // the queue is full
		}
	}
}

// dial connects to one of the host's own ports from one of its own addresses, "" for any.
func (h *Host) dial(from, port string) (net.Conn, error) {
	d := net.Dialer{Timeout: time.Second}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	type dialled struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() { // with its thread, which belongs to the host's network from then on
		runtime.LockOSThread()
		err := h.join()
		var conn net.Conn
		if err == nil {
			conn, err = d.Dial("tcp", "127.0.0.1:"+port)
		}
		if err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0) // no port is used up
		}
		done <- dialled{conn, err}
	}()
	r := <-done
	return r.conn, r.err
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
