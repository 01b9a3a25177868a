// Package page tests the page in a real browser, on the built binary and real ZooKeeper servers. It is a module of its own, so that the
// product's does not require the browser's modules.
package page

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

const soon = kit.Soon

var suite kit.Suite

func TestMain(m *testing.M) { suite.Main(m) }

func stage(t testing.TB) *kit.Stage { t.Helper(); return suite.Stage(t) }

// play is a kit.Play with more ways to order and to ask.
type play struct{ *kit.Play }

func newPlay(t *testing.T, s *kit.Stage) *play {
	t.Helper()
	return &play{suite.Play(t, s)}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pause is an operator's order, from a host of its own.
func (p *play) pause(t *testing.T, h *kit.Host, why string) {
	t.Helper()
	r := h.Ask(t, "pause", p.Options.Service, "--reason", why, "--zk", strings.Join(p.Options.ZK, ","), "--root", p.Options.Root)
	if r.Code != 0 {
		t.Fatalf("exit code %d: %s%s", r.Code, r.Out, r.Err)
	}
}

// get is the code and the body of a GET; 0 when there is no answer.
func get(t *testing.T, url string) (code int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(body)
}
