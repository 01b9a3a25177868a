package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/supervisor/control"
	"understudy/supervisor/testbed/keytest"
)

// asks is one request over a connection of its own; cert is the subject of the server's certificate.
func asks(t *testing.T, client *http.Client, method, url string, change func(*http.Request)) (code int, text string, h http.Header, cert string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(req)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.TLS != nil {
		cert = resp.TLS.PeerCertificates[0].Subject.CommonName
	}
	return resp.StatusCode, string(body), resp.Header, cert
}

func certified(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	authority := keytest.New(t)
	authority.Sign(t, name, nil)
	files := authority.TLS(name)
	own, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return &own
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func password(token string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth("me", token) }
}

// With a token for those who look, nobody else does; and it, or a password, changes nothing.
func TestWhoShowsNoTokenMayNotLookWhereOneIsSet(t *testing.T) {
	var broken atomic.Bool
	read := func() (string, error) {
		if broken.Load() {
			return "", errors.New("no such file")
		}
		return "look", nil
	}
	inBubbleless(t, func(c *Config) { c.ReadToken = read }, func(b *bed, at string) {
		client := &http.Client{Timeout: 20 * time.Second}
		ask := func(want int, method, path string, change func(*http.Request)) {
			t.Helper()
			code, text, h, _ := asks(t, client, method, "http://"+at+path, change)
			if code != want {
				t.Errorf("%s %s: %d %.200s", method, path, code, text)
			}
			if basic := strings.Contains(strings.Join(h.Values("WWW-Authenticate"), " "), "Basic"); code == 401 && basic != (method == "GET") {
				t.Errorf("%s %s: challenged by %q", method, path, h.Values("WWW-Authenticate"))
			}
		}
		b.board.State(control.State{Service: "db", Role: "active", Ready: true, Health: "ok"})
		for _, path := range []string{"/healthz", "/readyz", "/active/db"} {
			ask(200, "GET", path, nil)
		}
		for _, path := range []string{"/", "/metrics", "/api/v1/status", "/api/v1/history", "/api/v1/events"} {
			ask(401, "GET", path, nil)
		}
		for _, path := range []string{"/", "/metrics", "/api/v1/status", "/api/v1/history"} {
			for _, shows := range []func(*http.Request){bearer("look"), bearer("sesame"), password("look"), password("sesame")} {
				ask(200, "GET", path, shows)
			}
		}
		ask(401, "GET", "/", password("other"))
		for _, shows := range []func(*http.Request){nil, bearer("look"), password("sesame"), password("look")} {
			ask(401, "POST", pauseDB, shows)
		}
		if len(b.cluster.paused) > 0 {
			t.Error("paused")
		}
		broken.Store(true) // then the other token only
		ask(401, "GET", "/", bearer("look"))
		ask(200, "GET", "/", bearer("sesame"))
		ask(200, "POST", "/api/v1/token", bearer("sesame"))
	})
}

// What is spoken is TLS, by the certificate that is there when a connection is made; and a handshake that hangs makes room.
func TestWithACertificateTLSIsSpoken(t *testing.T) {
	var now atomic.Pointer[tls.Certificate]
	first, second := certified(t, "first"), certified(t, "second")
	now.Store(first)
	inBubbleless(t, func(c *Config) { c.Certificate = func() (*tls.Certificate, error) { return now.Load(), nil } }, func(b *bed, at string) {
		config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}} //nolint:gosec // which certificate it is, is asked below
		client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		url := "https://" + at + "/api/v1/status"
		if code, _, _, cert := asks(t, client, "GET", url, nil); code != 200 || cert != "first" {
			t.Errorf("%d, %s", code, cert)
		}
		now.Store(second)
		if code, _, _, cert := asks(t, client, "GET", url, nil); code != 200 || cert != "second" {
			t.Errorf("after a change: %d, %s", code, cert)
		}
		if code, text, _, _ := asks(t, http.DefaultClient, "GET", "http://"+at+"/api/v1/status", nil); code != 400 {
			t.Errorf("without TLS: %d %s", code, text)
		}
		old := config.Clone()
		old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		dialer := tls.Dialer{Config: old}
		if c, err := dialer.DialContext(t.Context(), "tcp", at); err == nil {
			c.Close()
			t.Error("TLS 1.1 is spoken")
		}
		for i := range 2 * held {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%2))}}
			c, err := d.DialContext(t.Context(), "tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprint(c, "\x16\x03\x01") // and no more
		}
		client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}).DialContext(ctx, network, address)
		}
		for range 3 {
			if code, _, _, _ := asks(t, client, "GET", "https://"+at+"/healthz", nil); code != 200 {
				t.Errorf("among handshakes that hang: %d", code)
			}
		}
	})
}
