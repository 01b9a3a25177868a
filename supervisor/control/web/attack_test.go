package web

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/control"
)

// checked asks as a load balancer does, each time over a connection of its own, from an address.
func (b *bed) checked(host byte, path string) error {
	c, err := b.dialFrom(host)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", path); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return err
}

// Those who hold as many connections as they can get, from two addresses or twenty, shut nobody out: neither a load balancer, nor
// monitoring, at another address or at one of theirs.
func TestAFloodOfConnectionsShutsNobodyOut(t *testing.T) {
	ways := map[string]string{
		"say nothing":                     "",
		"send headers slowly":             "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ",
		"rest between requests":           "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"keep back a body":                "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n",
		"take no answer":                  "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"take no page":                    "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"follow the events":               "GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"send a hundred requests at once": strings.Repeat("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 100),
	}
	for way, text := range ways {
		for _, addresses := range []int{2, 20} {
			inBubble(t, func(b *bed) {
				b.board.State(control.State{Service: "db", Role: "active", Ready: true, Health: "ok"})
				lost := 0
				for i := range addresses * mostOfOne {
					c, err := b.dialFrom(byte(10 + i%addresses))
					if err != nil {
						b.Fatal(err)
					}
					defer c.Close()
					_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond)) // whoever is turned away, or not read, goes on
					_, _ = io.WriteString(c, text)
					if i%1000 != 999 {
						continue
					}
					for _, host := range []byte{1, 10} { // another address, and one of theirs
						if err := b.checked(host, "/active/db"); err != nil {
							lost++
							b.Logf("%s, from %d addresses, after %d: a check from %d: %v", way, addresses, i, host, err)
						}
					}
				}
				for _, path := range []string{"/active/db", "/metrics", "/api/v1/status"} {
					if err := b.checked(1, path); err != nil {
						lost++
						b.Logf("%s, from %d addresses, in the end: %s: %v", way, addresses, path, err)
					}
				}
				if lost > 0 {
					b.Errorf("%s, from %d addresses: %d checks were not answered", way, addresses, lost)
				}
				if n := strings.Count(b.log.String(), "too many HTTP connections"); n > 10 {
					b.Errorf("%d lines in the log", n)
				}
			})
		}
	}
}

// heldUp is a connection of which a goroutine learns late that it was closed, as where many wait for a processor.
type heldUp struct {
	net.Conn
	until <-chan struct{}
}

func (h heldUp) Write(p []byte) (int, error) {
	n, err := h.Conn.Write(p)
	if err != nil {
		<-h.until
	}
	return n, err
}

// Watchers that had to make room take none, however long their goroutines take to end.
func TestWatchersThatMakeRoomMakeItAtOnce(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.board.State(control.State{Service: "db", Role: "active", Ready: true, Health: "ok"})
		until := make(chan struct{})
		defer close(until)
		b.serves = func(c net.Conn) net.Conn { return heldUp{c, until} }
		for i := range 4 * mostConns {
			c, err := b.dialFrom(byte(10 + i%20))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond))
			_, _ = io.WriteString(c, "GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
			synctest.Wait() // it is served, and has made room
		}
		if err := b.checked(1, "/active/db"); err != nil {
			b.Error(err)
		}
	})
}

// spared notes whether a connection can be spared when an answer begins.
type spared struct {
	http.ResponseWriter
	guest *guest
	can   bool
}

func (s *spared) WriteHeader(code int) {
	s.can = s.guest.place != nil
	s.ResponseWriter.WriteHeader(code)
}

// Requests that wait for their turn, or have none, do not keep their connections: on a busy machine they are as many as there may be.
func TestARequestKeepsItsConnectionOnlyWhileItIsServed(t *testing.T) {
	inBubble(t, func(b *bed) {
		answers := func(path string) (code int, can bool) {
			v := &visitor{crowd: &b.server.conns, guest: &guest{from: "192.0.2.1"}}
			v.crowd.enter(v.guest)
			defer v.crowd.exit(v.guest)
			ctx := context.WithValue(b.Context(), visitorKey{}, v)
			recorder := httptest.NewRecorder()
			w := &spared{ResponseWriter: recorder, guest: v.guest}
			b.server.routes().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://understudy"+path, nil))
			return recorder.Code, w.can
		}
		if code, can := answers("/api/v1/status"); code != http.StatusOK || can {
			b.Errorf("it is served: %d, its connection can be spared: %v", code, can)
		}
		for i := range mostReads {
			b.server.reading.enter(&guest{from: fmt.Sprint(i / readsOfOne)})
		}
		for _, p := range b.server.reading.of {
			p.lines[0].Init() // none of them can be spared
		}
		if code, can := answers("/api/v1/status"); code != http.StatusServiceUnavailable || !can {
			b.Errorf("nobody has time for it: %d, its connection can be spared: %v", code, can)
		}
	})
}

// The same with sockets: two addresses, each with as many connections as it gets.
func TestAFloodOfSocketsShutsNobodyOut(t *testing.T) {
	inBubbleless(t, nil, func(b *bed, at string) {
		b.board.State(control.State{Service: "db", Role: "active", Ready: true, Health: "ok"})
		dial := func(host byte) (net.Conn, error) {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, host)}}
			return d.DialContext(b.Context(), "tcp", at)
		}
		for i := range 2 * mostOfOne {
			c, err := dial(byte(2 + i%2))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(9) }}}
		for range 10 {
			for _, path := range []string{"/active/db", "/metrics"} {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+at+path, nil)
				if err != nil {
					b.Fatal(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					b.Errorf("%s: %v", path, err)
					continue
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					b.Errorf("%s: %d", path, resp.StatusCode)
				}
			}
		}
	})
}

// Whoever tries one token after the other soon has to wait, is counted, and is in the log; whoever has the right one is not held up.
func TestGuessesOfATokenAreSlowedDown(t *testing.T) {
	for _, addresses := range []int{1, 100} {
		inBubble(t, func(b *bed) {
			show := func(host byte, token string) int {
				c, err := b.dialFrom(host)
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				fmt.Fprintf(c, "POST /api/v1/token HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n", token)
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
				return resp.StatusCode
			}
			if code := show(1, "sesame"); code != http.StatusOK {
				b.Fatalf("the right token: %d", code)
			}
			codes := map[int]int{}
			for i := range 3000 {
				codes[show(byte(10+i%addresses), fmt.Sprint(i))]++
				if i%100 == 0 {
					if code := show(1, "sesame"); code != http.StatusOK {
						b.Errorf("the right token, meanwhile: %d", code)
					}
				}
				time.Sleep(time.Millisecond)
			}
			if codes[http.StatusUnauthorized] > guessesOfAll+50 || addresses == 1 && codes[http.StatusUnauthorized] > guessesOfOne+5 {
				b.Errorf("%d guesses were looked at in 3 s, from %d addresses: %v", codes[http.StatusUnauthorized], addresses, codes)
			}
			if code := show(2, "sesame"); addresses == 1 && code != http.StatusOK {
				b.Errorf("the right token, from an address that was not there before: %d", code)
			}
			time.Sleep(20 * time.Second)
			if text := b.log.String(); strings.Count(text, "wrong token") > 5 || !strings.Contains(text, "from=10.0.0.10") {
				b.Errorf("the log: %s", text)
			}
			if code := show(10, "sesame"); code != http.StatusOK {
				b.Errorf("the right token, later: %d", code)
			}
		})
	}
}

// A site whose name leads here (DNS rebinding) has a browser ask under that name.
func TestAForeignNameIsTurnedAway(t *testing.T) {
	inBubble(t, func(b *bed) {
		for _, c := range []struct {
			method, path, host string
			want               int
		}{
			{"GET", "/api/v1/status", "evil.example", 421}, {"GET", "/", "evil.example:8437", 421}, {"GET", "/metrics", "evil.example", 421},
			{"GET", "/api/v1/events", "a.evil.example", 421}, {"POST", pauseDB, "evil.example", 421}, {"GET", "/api/v1/history", "127.0.0.1.evil.example", 421},
			{"GET", "//active/../api/v1/status", "evil.example", 307}, {"GET", "/active/%2e%2e/api/v1/status", "evil.example", 404},
			{"GET", "/active/x", "evil.example", 404}, {"GET", "/healthz", "evil.example", 200}, {"GET", "/readyz", "evil.example", 200},
			{"GET", "/api/v1/status", "127.0.0.1:8437", 200}, {"GET", "/api/v1/status", "[::1]:8437", 200}, {"GET", "/api/v1/status", "LOCALHOST.", 200},
			{"GET", "/api/v1/status", "A:8437", 200}, {"GET", "/metrics", "a", 200}, {"POST", pauseDB, "10.1.2.3", 401},
		} {
			conn, err := b.dial()
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", c.method, c.path, c.host)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				b.Fatal(err)
			}
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 100))
			conn.Close()
			if resp.StatusCode != c.want || c.want == 421 && !bytes.Contains(text, []byte("this is not known to be")) {
				b.Errorf("%s %s of %s: %d %s", c.method, c.path, c.host, resp.StatusCode, text)
			}
		}
	})
}
