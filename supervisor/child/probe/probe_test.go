package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/must"
)

func says(t *testing.T, p Probe, want string) {
	t.Helper()
	saysWithin(t, 20*time.Second, p, want)
}

func saysWithin(t *testing.T, limit time.Duration, p Probe, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := p.Check(ctx)
	if want == "" {
		if err != nil {
			t.Errorf("%v: %v", p, err)
		}
		return
	}
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("%v: %v, not %q", p, err, want)
	}
}

func listener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestTCPProbeSaysWhy(t *testing.T) {
	there := listener(t).Addr().String()
	gone := listener(t)
	nobody := gone.Addr().String()
	_ = gone.Close()
	says(t, Probe{Kind: KindTCP, Target: there}, "")
	says(t, Probe{Kind: KindTCP, Target: nobody}, "tcp "+nobody+": connection refused")
	says(t, Probe{Kind: KindTCP, Target: "no-such-host.invalid:1"}, "tcp no-such-host.invalid:1: ")
}

func TestProbeOfSomethingThatDoesNotAnswerEnds(t *testing.T) {
	l := listener(t)
	saysWithin(t, 100*time.Millisecond, Probe{Kind: KindHTTP, Target: "http://" + l.Addr().String()}, "http http://"+l.Addr().String()+": no answer in time")
}

func TestHTTPProbeJudgesTheAnswer(t *testing.T) {
	asked := make(chan string, 100)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- "another host"
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			_, _ = fmt.Fprint(w, "fine")
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/worse":
			http.Redirect(w, r, "/bad", http.StatusFound)
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/endless":
			w.WriteHeader(http.StatusBadGateway)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		case "/bad":
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, "first\nno leader \x1b[31m yet\n\n")
		}
	}))
	defer server.Close()
	for path, want := range map[string]string{
		"/ok": "", "/empty": "", "/moved": "", "/away": "",
		"/bad":     ": status 503: no leader  [31m yet",
		"/worse":   ": status 503",
		"/round":   ": it redirects endlessly",
		"/endless": ": status 502",
	} {
		p := Probe{Kind: KindHTTP, Target: server.URL + path}
		if want != "" {
			want = "http " + server.URL + path + want
		}
		says(t, p, want)
	}
	if len(asked) > 0 {
		t.Error("a redirection to another host was followed")
	}
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	defer tls.Close()
	says(t, Probe{Kind: KindHTTP, Target: tls.URL}, "http "+tls.URL+": tls: failed to verify certificate")
}

func TestExecProbeTellsTheLastLine(t *testing.T) {
	var out string
	var code int
	var fault error
	p := Probe{Kind: KindExec, Argv: []string{"check", "it"}, Run: func(ctx context.Context, argv []string) ([]byte, int, error) {
		if strings.Join(argv, " ") != "check it" {
			t.Errorf("%q", argv)
		}
		if errors.Is(fault, context.DeadlineExceeded) {
			<-ctx.Done()
		}
		return []byte(out), code, fault
	}}
	says(t, p, "")
	code = 2
	says(t, p, "exec: exit code 2")
	out = "one\nCould not connect: refused\n \n\n"
	says(t, p, "exec: exit code 2: Could not connect: refused")
	out = strings.Repeat("x", 5000)
	says(t, p, "exec: exit code 2: "+strings.Repeat("x", 150))
	out, fault = "waiting for lock\n", context.DeadlineExceeded
	saysWithin(t, 50*time.Millisecond, p, "exec: it did not end in time and was killed: waiting for lock")
	fault = errors.New("program not found: x is not in PATH")
	says(t, p, "exec: program not found: x is not in PATH")
}
