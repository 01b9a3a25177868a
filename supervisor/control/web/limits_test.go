package web

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy/election"
	"understudy/supervisor/testbed/must"
)

func TestAClientThatDoesNotSayWhatItWantsIsDropped(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "half a line": "GET /hea", "no end of headers": "GET /healthz HTTP/1.1\r\nHost: x\r\n",
		"half a body": "POST " + pauseDB + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sesame\r\nContent-Length: 100\r\n\r\n{",
	} {
		inBubble(t, func(b *bed) {
			c, err := b.dial()
			must.OK(b, err)
			defer c.Close()
			began := time.Now()
			fmt.Fprint(c, text)
			if _, err := io.Copy(io.Discard, c); err != nil {
				b.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took > 3*headerPatience {
				b.Errorf("%s: closed after %v", name, took)
			}
		})
	}
}

func TestAHeaderThatIsTooLargeIsRefused(t *testing.T) {
	inBubble(t, func(b *bed) {
		code, _, _ := b.ask("GET", "/healthz", "", "X-Long", strings.Repeat("x", 2*largestHeader))
		if code != http.StatusRequestHeaderFieldsTooLarge {
			b.Errorf("%d", code)
		}
	})
}

// With all places taken, the oldest connection for checks makes room, and no other; places come back.
func TestConnectionsAreBoundedAndPlacesComeBack(t *testing.T) {
	inBubble(t, func(b *bed) {
		conns := make([]net.Conn, mostConns+mostChecks+1)
		for i := range conns {
			c, err := b.dialFrom(byte(10 + i/connsOfOne))
			must.OK(b, err)
			conns[i] = c
			time.Sleep(time.Millisecond)
		}
		for i, c := range conns {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.EOF) != (i == mostConns) {
				b.Errorf("connection %d: %v", i, err)
			}
		}
		if code, _ := b.get("/metrics"); code != http.StatusServiceUnavailable {
			b.Errorf("with all places taken: %d", code)
		}
		time.Sleep(time.Millisecond) // its place in the queue is free
		check, err := b.dialFrom(1)
		must.OK(b, err)
		fmt.Fprint(check, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		if text, err := io.ReadAll(check); err != nil || !strings.Contains(string(text), "200 OK") { // it is closed after the answer
			b.Errorf("a check: %v %s", err, text)
		}
		for _, c := range conns {
			c.Close()
		}
		time.Sleep(time.Second)
		for i := range mostConns {
			c, err := b.dialFrom(byte(10 + i/connsOfOne))
			must.OK(b, err)
			defer c.Close()
			if i == mostConns-2 { // one place is left, and asked for
				if code, text := b.get("/metrics"); code != 200 || !strings.Contains(text, "understudy_http_evicted_connections_total 2\n") {
					b.Errorf("afterwards: %d", code)
				}
			}
		}
	})
}

// Answers that wait in memory for clients to take them are bounded, in all and for each address.
func TestAnswersThatNobodyTakesAreFew(t *testing.T) {
	inBubble(t, func(b *bed) {
		for i := range 100 {
			b.cluster.services[fmt.Sprint("s", i)] = map[string]election.Role{"a": election.RoleActive} // more than net/http keeps back
		}
		for path, most := range map[string]int{"/api/v1/status": readsOfOne, "/metrics": scrapesOfOne} {
			for range most {
				c, err := b.dialFrom(10)
				must.OK(b, err)
				defer c.Close()
				fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path)
			}
			time.Sleep(time.Second)
			if err := b.checked(10, path); err == nil || !strings.Contains(err.Error(), "503") {
				b.Errorf("one more %s: %v", path, err)
			}
			if err := b.checked(11, path); err != nil {
				b.Errorf("%s from another address: %v", path, err)
			}
		}
	})
}

func TestUnknownPathsAreNotFound(t *testing.T) {
	inBubble(t, func(b *bed) {
		for path, want := range map[string]int{"/x": 404, "/active/": 404, "/active/a/b": 404, "/api/v1/": 404, "/api/v1/nosuch": 404, pauseDB: 405, "/": 200, "/index.html": 404} {
			code, text, h := b.ask("GET", path, "")
			if (code != 200) != strings.HasPrefix(text, `{"error":"`) || (code == 405) != (h.Get("Allow") == "POST") {
				b.Errorf("%s: %s %v", path, text, h)
			}
			if code != want || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") == "" {
				b.Errorf("%s: %d %v", path, code, h)
			}
		}
		for _, c := range []struct {
			method, path, body string
			code               int
			says               string
		}{
			{"POST", pauseDB, `{"reason": 5}`, 400, "reason is of another type: number"},
			{"POST", pauseDB, `[]`, 400, "is of another type: array"},
			{"POST", "/api/v1/status", "", 405, "POST does not go with /api/v1/status: use GET"},
			{"DELETE", pauseDB, "", 405, "DELETE does not go with " + pauseDB + ": use POST"},
			{"GET", "/api/v1/stauts", "", 404, "there is no /api/v1/stauts: below /api/v1 are status, history, "},
			{"GET", "/status", "", 404, "there is no /status: below /api/v1 are status, history, events, token, services/SERVICE/ORDER and nodes/NODE/ORDER, and the page is /"},
			{"POST", "/api/v1/services//pause", "", 404, "there is no /api/v1/services//pause: a name in it is empty"},
			{"GET", "//healthz", "", 404, "a name in it is empty"},
			{"GET", "/api/v1/status?service=db", "", 400, `there is no parameter "service": /api/v1/status has none`},
			{"GET", "/api/v1/history?svc=db", "", 400, `there is no parameter "svc": /api/v1/history has service, number`},
			{"POST", pauseDB + "?reason=disks", "", 400, `there is no parameter "reason": ` + pauseDB + " has none"},
			{"GET", "/api/v1/events?service", "", 400, `there is no parameter "service": /api/v1/events has none`},
		} {
			code, text, _ := b.ask(c.method, c.path, c.body, "Authorization", "Bearer sesame")
			var got struct{ Error string }
			if err := json.Unmarshal([]byte(text), &got); err != nil || code != c.code || !strings.Contains(got.Error, c.says) {
				b.Errorf("%s %s: %d %s", c.method, c.path, code, text)
			}
		}
	})
}

// FuzzRequests sends requests of any kind. None but one that shows the token changes anything, and each has an answer.
func FuzzRequests(f *testing.F) {
	f.Add("GET", "/active/db", "", "")
	f.Add("POST", pauseDB, "Bearer x", "{}")
	f.Add("POST", "/api/v1/services/%2e%2e/pause", "bearer\tsesam", `{"reason": 3}`)
	f.Add("HEAD", "/api/v1/../../active/db?x=%zz", "Basic c2VzYW1lOg==", "")
	f.Add("PUT", "//api/v1/services/db/resume", "Bearer sesame2", "")
	f.Fuzz(func(t *testing.T, method, path, auth, body string) {
		if strings.ContainsAny(method+path+auth, "\r\n") || strings.ContainsAny(method+path, " ") || method == "" {
			return
		}
		if path == "/api/v1/events" || strings.HasSuffix(strings.TrimSpace(auth), "sesame") { // it goes on, or is the token
			return
		}
		inBubble(t, func(b *bed) {
			c, err := b.dial()
			must.OK(t, err)
			defer c.Close()
			go fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n%s", method, path, auth, len(body), body)
			resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
			if err != nil {
				return // net/http closes what is no HTTP
			}
			defer resp.Body.Close()
			if resp.StatusCode == http.StatusInternalServerError || method == "POST" && resp.StatusCode == http.StatusOK {
				t.Errorf("%s %s %q: %d", method, path, auth, resp.StatusCode)
			}
			if len(b.cluster.paused) > 0 {
				t.Errorf("paused by %s %s %q", method, path, auth)
			}
		})
	})
}

// Who asks for the history of thousands of services and goes before the answer must leave nothing behind: the memory is the
// supervisor's, and when that is killed for it, so are the programs.
func TestClientsWhoAskAndGoLeaveNothingBehind(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.cluster.change(func() { b.cluster.slow = time.Minute })
		for i := range 1000 {
			c, err := b.dial()
			must.OK(b, err)
			fmt.Fprintf(c, "GET /api/v1/history?service=x%d HTTP/1.1\r\nHost: x\r\n\r\n", i)
			time.Sleep(time.Millisecond)
			c.Close()
		}
		if code, _ := b.get("/api/v1/history?service=" + strings.Repeat("x", 2*longestName)); code != http.StatusNotFound {
			b.Errorf("a long name: %d", code)
		}
		b.cluster.change(func() { b.cluster.slow = 0 })
		before, began := b.cluster.asked(), time.Now()
		if code, text := b.get("/api/v1/history?service=db"); code != http.StatusOK || time.Since(began) > patience || b.cluster.asked() > before+1 {
			b.Errorf("afterwards: %d %s after %v, and %d readings", code, text, time.Since(began), b.cluster.asked()-before)
		}
	})
}
