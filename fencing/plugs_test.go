package fencing

import (
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// With plugs the config alone says whom a method asks, and of whom.
func TestPlugsSayWhomAMethodFences(t *testing.T) {
	a := newAttacked(t)
	plugs := Plugs{"db-1": "127.0.0.1", "db-2": "vm two"}
	h := HTTP{URL: "http://{plug}:" + a.port() + "/{node}/{plug}?{boot}", Plugs: plugs, BearerFile: file(t, "secret")}
	if err := h.Fence(t.Context(), target); err != nil || a.path != "/db-1/127.0.0.1?b1" || a.auth != "Bearer secret" {
		t.Errorf("%v, %s, %s", err, a.path, a.auth)
	}
	h.URL = a.URL + "/{plug}"
	second := target
	second.Node = "db-2"
	if err := h.Fence(t.Context(), second); err != nil || a.path != "/vm%20two?" {
		t.Errorf("%v, %s", err, a.path)
	}
	named := target
	named.Host = "127.0.0.1" // as plugs says
	h.URL = "http://{host}:" + a.port() + "/{host}"
	if err := h.Fence(t.Context(), named); err != nil || a.path != "/127.0.0.1?" {
		t.Errorf("%v, %s", err, a.path)
	}
	must.Report(t, (Exec{Command: sh(`[ "$UNDERSTUDY_TARGET_PLUG" = 127.0.0.1 ]`).Command, Plugs: plugs}).Fence(t.Context(), target))
}

func TestNodeThatPlugsDoNotListIsRefused(t *testing.T) {
	a := newAttacked(t)
	plugs := Plugs{"db-1": "x"}
	stranger := target
	stranger.Node = "mail"
	for _, m := range []Method{
		HTTP{URL: a.URL, Plugs: plugs}, Exec{Command: []string{"true"}, Plugs: plugs}, FenceAgent{Command: []string{"true"}, Plugs: plugs},
		SSH{Address: "127.0.0.1:1", Plugs: plugs},
	} {
		err := m.Fence(t.Context(), stranger)
		if err == nil || !strings.Contains(err.Error(), `gives node "mail", which the method's plugs do not list: add it there, or type `+"`understudy fence confirm redis") {
			t.Errorf("%s: %v", m.Name(), err)
		}
	}
	for _, url := range []string{"/{host}", "/{machine}", "/?{address}"} { // db-1 is listed; what else a breadcrumb says of it is not
		if err := (HTTP{URL: a.URL + url, Plugs: plugs}).Fence(t.Context(), target); err == nil {
			t.Errorf("%s is asked for", url)
		}
	}
	if a.asked > 0 {
		t.Errorf("asked %d times", a.asked)
	}
	if err := (SSH{KeyFile: "/none", Plugs: plugs}).Fence(t.Context(), target); err == nil || !strings.Contains(err.Error(), "log in at x:22") {
		t.Errorf("ssh goes elsewhere: %v", err)
	}
}
