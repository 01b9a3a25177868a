package web

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/control"
	"understudy/supervisor/testbed/keytest"
	"understudy/supervisor/testbed/must"
)

// asks is one request; cert is the subject of the server's certificate.
func asks(t *testing.T, client *http.Client, url string) (code int, cert string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must.OK(t, err)
	resp, err := client.Do(req)
	must.OK(t, err)
	defer resp.Body.Close()
	if resp.TLS != nil {
		cert = resp.TLS.PeerCertificates[0].Subject.CommonName
	}
	return resp.StatusCode, cert
}

func certified(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	authority := keytest.New(t)
	authority.Sign(t, name, nil)
	files := authority.TLS(name)
	own, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	must.OK(t, err)
	return &own
}

// With a token for those who look, nobody else does; and it, or a password, changes nothing.
func TestWhoShowsNoTokenMayNotLookWhereOneIsSet(t *testing.T) {
	inBubble(t, func(b *bed) {
		look := "look"
		b.server.cfg.ReadToken = func() (string, error) {
			if look == "" {
				return "", errors.New("no such file")
			}
			return look, nil
		}
		ask := func(want int, method, path, shows string) {
			b.Helper()
			code, text, h := b.ask(method, path, "", "Authorization", shows)
			if code != want {
				b.Errorf("%s %s with %q: %d %.200s", method, path, shows, code, text)
			}
			if basic := strings.Contains(strings.Join(h.Values("WWW-Authenticate"), " "), "Basic"); code == 401 && basic != (method == "GET") {
				b.Errorf("%s %s: challenged by %q", method, path, h.Values("WWW-Authenticate"))
			}
		}
		password := func(token string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+token)) }
		b.board.State(control.LocalStatus{Service: "db", Role: "active", Ready: true, Health: "ok"})
		for _, path := range []string{"/healthz", "/readyz", "/active/db"} {
			ask(200, "GET", path, "")
		}
		for _, path := range []string{"/", "/metrics", "/api/v1/status", "/api/v1/history", "/api/v1/events"} {
			ask(401, "GET", path, "")
		}
		for _, path := range []string{"/", "/metrics", "/api/v1/status", "/api/v1/history"} {
			for _, shows := range []string{"Bearer look", "Bearer sesame", password("look"), password("sesame")} {
				ask(200, "GET", path, shows)
			}
		}
		ask(401, "GET", "/", password("other"))
		for _, shows := range []string{"", "Bearer look", password("sesame"), password("look")} {
			ask(401, "POST", pauseDB, shows)
		}
		if len(b.cluster.paused) > 0 {
			b.Error("paused")
		}
		look = "" // then the other token only
		ask(401, "GET", "/", "Bearer look")
		ask(200, "GET", "/", "Bearer sesame")
		ask(200, "POST", "/api/v1/token", "Bearer sesame")
	})
}

// secured serves TLS on a real socket, at the address that f is told.
func secured(t *testing.T, certificate func() (*tls.Certificate, error), f func(at string)) {
	t.Helper()
	server := New(Config{Node: "a", Board: NewBoard(func() time.Duration { return 0 }), Cluster: newCluster(), Logger: hclog.NewNullLogger(), Certificate: certificate})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	defer func() {
		cancel()
		must.Report(t, <-done)
	}()
	f(l.Addr().String())
}

// What is spoken is TLS, by the certificate that is there when a connection is made; and a handshake that hangs makes room.
func TestWithACertificateTLSIsSpoken(t *testing.T) {
	var now atomic.Pointer[tls.Certificate]
	first, second := certified(t, "first"), certified(t, "second")
	now.Store(first)
	secured(t, func() (*tls.Certificate, error) { return now.Load(), nil }, func(at string) {
		config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}} //nolint:gosec // which certificate it is, is asked below
		client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		url := "https://" + at + "/api/v1/status"
		if code, cert := asks(t, client, url); code != 200 || cert != "first" {
			t.Errorf("%d, %s", code, cert)
		}
		now.Store(second)
		if code, cert := asks(t, client, url); code != 200 || cert != "second" {
			t.Errorf("after a change: %d, %s", code, cert)
		}
		if code, _ := asks(t, http.DefaultClient, "http://"+at+"/api/v1/status"); code != 400 {
			t.Errorf("without TLS: %d", code)
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
			must.OK(t, err)
			defer c.Close()
			fmt.Fprint(c, "\x16\x03\x01") // and no more
		}
		client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}).DialContext(ctx, network, address)
		}
		for range 3 {
			if code, _ := asks(t, client, "https://"+at+"/healthz"); code != 200 {
				t.Errorf("among handshakes that hang: %d", code)
			}
		}
	})
}
