package fencing

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func TestHTTPRequestSaysWhomToFence(t *testing.T) {
	var got, body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.String() + " " + r.Header.Get("X-Token") + " " + r.Header.Get("Authorization")
		body = string(text)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer srv.Close()
	h := HTTP{
		URL: srv.URL + "/off?node={node}&host={host}", Method: "PUT", Headers: map[string]string{"X-Token": "{token}"},
		Body: `{"service": "{service}", "boot": "{boot}", "other": "{other}"}`, Status: []int{202}, BearerFile: file(t, "pass\n"),
	}
	must.OK(t, h.Fence(t.Context(), target))
	if want := "PUT /off?node=db-1&host=db-1.example 42 Bearer pass"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if want := `{"service": "redis", "boot": "b1", "other": "{other}"}`; body != want {
		t.Errorf("got %s", body)
	}
}

// Refusal, a redirection, a half answer, a hang, another server's certificate: none of it is a death.
func TestHTTPAnswersThatAreNoDeath(t *testing.T) {
	const password = "the-password"
	release := make(chan struct{})
	defer close(release)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		status  []int
		tls     bool
		says    string
	}{
		"refused": {says: `answered with 403 Forbidden: "no, ***"`, handler: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no, "+password, http.StatusForbidden)
		}},
		"another success": {status: []int{204}, says: "answered with 200 OK", handler: func(http.ResponseWriter, *http.Request) {}},
		"redirected": {says: "answered with 302 Found", handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}},
		"half an answer": {says: "read the answer", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("off"))
		}},
		"hang": {says: "given up: no answer within 300ms", handler: func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}},
		"unknown certificate": {tls: true, says: "certificate", handler: func(http.ResponseWriter, *http.Request) {}},
	} {
		t.Run(name, func(t *testing.T) {
			start := httptest.NewServer
			if c.tls {
				start = httptest.NewTLSServer
			}
			srv := start(c.handler)
			defer srv.Close()
			srv.Config.ErrorLog = nil
			h := HTTP{URL: srv.URL + "/?key=" + password, Status: c.status, BearerFile: file(t, password)}
			patience := 10 * time.Second // for what does answer
			if name == "hang" {
				patience = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("no answer within %v", patience))
			defer cancel()
			err := h.Fence(ctx, target)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v, want %s", err, c.says)
			}
			if strings.Contains(err.Error(), password) {
				t.Errorf("it tells the password: %v", err)
			}
		})
	}
}

func TestHTTPTrustsItsOwnAuthority(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	cert := "-----BEGIN CERTIFICATE-----\n" + base64Lines(srv.Certificate().Raw) + "-----END CERTIFICATE-----\n"
	must.Report(t, (HTTP{URL: srv.URL, CAFile: file(t, cert)}).Fence(t.Context(), target))
}

// What a breadcrumb says comes from outside. It is not put where it could mean something else.
func TestOddBreadcrumbsAreNotHandedOn(t *testing.T) {
	for _, m := range []Method{HTTP{URL: "http://127.0.0.1:1/{node}"}, FenceAgent{Command: []string{"true"}}, SSH{Address: "127.0.0.1:1"}} {
		for _, change := range []func(*Target){
			func(t *Target) { t.Node = "a\naction=on" },
			func(t *Target) { t.Host = "a;reboot" },
			func(t *Target) { t.Service = "a b" },
			func(t *Target) { t.Session = "?x=y" },
			func(t *Target) { t.Address = "a/b" },
		} {
			odd := target
			change(&odd)
			if err := m.Fence(t.Context(), odd); err == nil || !strings.Contains(err.Error(), "cannot be passed on") {
				t.Errorf("%s: %v", m.Name(), err)
			}
		}
	}
	for _, addr := range []string{"[fe80::1%eth0]:8438", "10.0.0.1:8438", ""} {
		fine := target
		if fine.Address = addr; fine.plain() != nil {
			t.Errorf("%s is refused", addr)
		}
	}
}
