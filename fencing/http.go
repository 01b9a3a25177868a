package fencing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/supervisor/keyfile"
)

// HTTP is the method that makes one request, for example to a power controller or a cloud's API. The expected status says
// that the target is dead. It fills in {node}, {plug} and the like in URL, Headers and Body; only the config says which
// server it asks. It does not follow a redirection, which is a status as any other.
type HTTP struct {
	URL        string
	Method     string // POST unless set
	Headers    map[string]string
	Body       string
	Status     []int  // that mean success; any 2xx unless set
	BearerFile string // holds a secret for the Authorization header
	CAFile     string // the authorities for the server's certificate; the system's unless set
	Plugs      Plugs
}

// Name is "http".
func (HTTP) Name() string { return "http" }

// Fence makes the request. No error shows the URL: it may hold a password.
func (h HTTP) Fence(ctx context.Context, t Target) error {
	req, err := h.request(ctx, t)
	if err != nil {
		return err
	}
	token := ""
	if h.BearerFile != "" {
		if token, err = keyfile.Line(h.BearerFile); err != nil {
			return fmt.Errorf("read a secret: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport, err := h.transport()
	if err != nil {
		return err
	}
	client := http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return h.withoutURL(ctx, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, tailSize))
	if err != nil { // a status with half a body is no answer
		return h.withoutURL(ctx, fmt.Errorf("read the answer: %w", err))
	}
	if h.means(resp.StatusCode) {
		return nil
	}
	said := ""
	if s := strings.TrimSpace(strings.ToValidUTF8(string(text), "?")); s != "" {
		if token != "" {
			s = mask(s, token)
		}
		said = ": " + strconv.Quote(s[:min(len(s), 200)])
	}
	return fmt.Errorf("answered with %s%s", resp.Status, said)
}

func (h HTTP) request(ctx context.Context, t Target) (*http.Request, error) {
	facts, err := h.Plugs.facts(t)
	if err != nil {
		return nil, err
	}
	where, err := facts.url(h.URL)
	if err != nil {
		return nil, err
	}
	body, err := facts.fill(h.Body, told, nil)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(h.Method, http.MethodPost), where, strings.NewReader(body))
	if err != nil || req.URL.User != nil {
		return nil, errors.New("the URL cannot be used with this target")
	}
	for key, value := range h.Headers {
		at := told
		if http.CanonicalHeaderKey(key) == "Host" { // one server may be many
			at = chosen
		}
		if value, err = facts.fill(value, at, nil); err != nil {
			return nil, fmt.Errorf("header %s: %w", key, err)
		}
		req.Header.Set(key, value)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	return req, nil
}

func (h HTTP) means(status int) bool {
	if len(h.Status) == 0 {
		return status/100 == 2
	}
	return slices.Contains(h.Status, status)
}

func (h HTTP) transport() (*http.Transport, error) {
	t := &http.Transport{DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10}
	if h.CAFile == "" {
		return t, nil
	}
	var err error
	t.TLSClientConfig, err = (&keyfile.TLS{CAFile: h.CAFile}).Config()
	return t, err
}

func (h HTTP) withoutURL(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("given up: %w", context.Cause(ctx))
	}
	if named, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", named.Op, named.Err)
	}
	return err
}
