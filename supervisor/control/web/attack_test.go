package web

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/control"
	"understudy/supervisor/testbed/must"
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

// held is how many connections those who attack hold from each address, or try to.
const held = 256

// Clients that hold as many connections as they can get, from two addresses or twenty, keep no load balancer from its answer, at another
// address or at one of theirs; and from two addresses they keep monitoring at another address from nothing.
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
		for addresses, held := range map[int]int{2: held, 20: connsOfOne + 8} {
			inBubble(t, func(b *bed) {
				b.board.State(control.LocalStatus{Service: "db", Role: "active", Ready: true, Health: "ok"})
				lost := 0
				check := func(host byte, paths ...string) {
					for _, path := range paths {
						if err := b.checked(host, path); err != nil {
							lost++
							b.Logf("%s, from %d addresses: %s from %d: %v", way, addresses, path, host, err)
						}
					}
				}
				for i := range addresses * held {
					c, err := b.dialFrom(byte(10 + i%addresses))
					must.OK(b, err)
					defer c.Close()
					_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond)) // one that is closed, or not read, is left as it is
					_, _ = io.WriteString(c, text)
					if i%250 == 249 {
						check(1, "/active/db")
						check(10, "/active/db")
					}
				}
				check(1, "/active/db", "/healthz", "/readyz")
				if addresses == 2 {
					check(1, "/metrics", "/api/v1/status", "/api/v1/history", "/")
				}
				if lost > 0 {
					b.Errorf("%s, from %d addresses: %d checks were not answered", way, addresses, lost)
				}
				synctest.Wait()
				if n := strings.Count(b.log.String(), "too many HTTP"); n == 0 || n > 10 {
					b.Errorf("%d lines in the log", n)
				}
			})
		}
	}
}

// A wrong token keeps the place of its connection for a while, also if the client does not wait for the answer; it is counted, and logged
// with the address. A client at another address that has the right one is not held up.
func TestWrongTokensAreFewASecond(t *testing.T) {
	inBubble(t, func(b *bed) {
		show := func(host byte, token string) net.Conn {
			c, err := b.dialFrom(host)
			must.OK(b, err)
			fmt.Fprintf(c, "POST /api/v1/token HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", token)
			return c
		}
		answer := func(c net.Conn) int {
			defer c.Close()
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			must.OK(b, err)
			resp.Body.Close()
			return resp.StatusCode
		}
		const lasts = 10 * time.Second
		began := time.Now()
		for i := 0; time.Since(began) < lasts; i++ {
			c := show(10, fmt.Sprint(i))
			time.Sleep(time.Millisecond)
			c.Close() // without waiting: the right token would be answered by now
			if i%500 == 0 {
				at := time.Now()
				if code := answer(show(1, "sesame")); code != http.StatusOK || time.Since(at) > 0 {
					b.Errorf("the right token: %d after %v", code, time.Since(at))
				}
			}
		}
		_, text := b.get("/metrics")
		_, text, _ = strings.Cut(text, `understudy_http_refused_requests_total{reason="wrong token"} `)
		text, _, _ = strings.Cut(text, "\n")
		if n, err := strconv.Atoi(text); err != nil || n < connsOfOne || n > connsOfOne*int(lasts/wrongTokenDelay+1) {
			b.Errorf("%s tokens were looked at in %v", text, lasts)
		}
		at := time.Now()
		if code := answer(show(11, "x")); code != http.StatusUnauthorized || time.Since(at) != wrongTokenDelay {
			b.Errorf("a wrong token: %d after %v", code, time.Since(at))
		}
		time.Sleep(2 * lineWindow)
		if text := b.log.String(); strings.Count(text, "wrong token") > 2 || !strings.Contains(text, "from=10.0.0.10") || !strings.Contains(text, "10.0.0.11") {
			b.Errorf("the log: %s", text)
		}
		if code := answer(show(10, "sesame")); code != http.StatusOK {
			b.Errorf("the right token, later: %d", code)
		}
	})
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
			{"GET", "/active/../api/v1/status", "evil.example", 307}, {"GET", "//api/v1/status", "evil.example", 404}, {"GET", "/active/%2e%2e/api/v1/status", "evil.example", 404},
			{"GET", "/active/x", "evil.example", 404}, {"GET", "/healthz", "evil.example", 200}, {"GET", "/readyz", "evil.example", 200},
			{"GET", "/api/v1/status", "127.0.0.1:8437", 200}, {"GET", "/api/v1/status", "[::1]:8437", 200}, {"GET", "/api/v1/status", "LOCALHOST.", 200},
			{"GET", "/api/v1/status", "A:8437", 200}, {"GET", "/metrics", "a", 200}, {"POST", pauseDB, "10.1.2.3", 401},
		} {
			conn, err := b.dial()
			must.OK(b, err)
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", c.method, c.path, c.host)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			must.OK(b, err)
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 100))
			conn.Close()
			if resp.StatusCode != c.want || c.want == 421 && !bytes.Contains(text, []byte("this is not known to be")) {
				b.Errorf("%s %s of %s: %d %s", c.method, c.path, c.host, resp.StatusCode, text)
			}
		}
	})
}
