package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/testbed/must"
)

var request = PromiseRequest{Service: "db", Token: 41, By: "b", Of: "a", Machine: "m1", For: 6 * time.Second}

func TestPromiseIsGivenForWhatWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got PromiseRequest
		d := newDesk(t, nil)
		d.Promise = func(p PromiseRequest) error { got = p; return nil }
		must.OK(t, d.method().Promise(t.Context(), "a:1", request))
		d.wg.Wait()
		got.Nonce = nil
		if got.Service != "db" || got.Token != 41 || got.By != "b" || got.For != 6*time.Second {
			t.Errorf("asked for %+v", got)
		}
		if d.killed.Load() != 0 {
			t.Error("a promise has killed")
		}
	})
}

// Who cannot promise, or is somebody else, does not; and a guardian, in place of a dead supervisor, never does.
func TestNoPromiseIsTakenForOne(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *PromiseRequest)
		answer Promise
		says   string
	}{
		"refused":         {func(*PromiseRequest) {}, func(PromiseRequest) error { return errors.New("I see it") }, "I see it"},
		"a guardian":      {func(*PromiseRequest) {}, nil, "the supervisor does not answer"},
		"another node":    {func(p *PromiseRequest) { p.Of = "c" }, given, "this is a"},
		"another machine": {func(p *PromiseRequest) { p.Machine = "m2" }, given, "this is a"},
		"itself":          {func(p *PromiseRequest) { p.By = "a" }, given, "a node does not ask itself"},
		"a path":          {func(p *PromiseRequest) { p.Service = "../x" }, given, "no answer"},
		"for ever":        {func(p *PromiseRequest) { p.For = time.Hour }, given, "no answer"},
		"for no time":     {func(p *PromiseRequest) { p.For = 0 }, given, "no answer"},
		"no token":        {func(p *PromiseRequest) { p.Token = 0 }, given, "no answer"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, nil)
			d.Promise = c.answer
			p := request
			c.change(&p)
			if err := d.method().Promise(t.Context(), "a:1", p); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
			d.wg.Wait()
		})
	}
}

func given(PromiseRequest) error { return nil }

// A message for one purpose is never good for the other: a question about a promise kills nothing, also where it is not
// understood, and one about a death binds nobody.
func TestPromisesAndDeathsAreNotMistaken(t *testing.T) {
	for _, purpose := range []string{asking, answering, promising} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, nil)
			promised := false
			d.Promise = func(PromiseRequest) error { promised = true; return nil }
			conn, _ := d.dial(t.Context(), "")
			p := request
			p.Nonce = newNonce()
			var w promiseReply
			if err := converse(conn, secret, purpose, p, promising, &w); err == nil || w.Given {
				t.Errorf("%q: %+v", purpose, w)
			}
			conn.Close()
			d.wg.Wait()
			if promised || d.killed.Load() != 0 {
				t.Errorf("%q: promised %v, killed %d", purpose, promised, d.killed.Load())
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.Promise = func(PromiseRequest) error { t.Error("promised"); return nil }
		conn, _ := d.dial(t.Context(), "")
		q := asked
		q.Nonce = newNonce()
		if err := converse(conn, secret, requesting, q, promising, new(promiseReply)); err == nil {
			t.Error("answered")
		}
		conn.Close()
		d.wg.Wait()
	})
}

// An answer that the other secret made is none, and one that says too little neither.
func TestForgedPromiseIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		secret  []byte
		purpose string
		w       promiseReply
	}{
		"forged":          {[]byte("another secret, as long"), promising, promiseReply{true, "", "db", 41, "a", "m1", request.For}},
		"of a death":      {secret, answering, promiseReply{true, "", "db", 41, "a", "m1", request.For}},
		"another service": {secret, promising, promiseReply{true, "", "web", 41, "a", "m1", request.For}},
		"another token":   {secret, promising, promiseReply{true, "", "db", 40, "a", "m1", request.For}},
		"another node":    {secret, promising, promiseReply{true, "", "db", 41, "c", "m1", request.For}},
		"another machine": {secret, promising, promiseReply{true, "", "db", 41, "a", "m2", request.For}},
		"too short":       {secret, promising, promiseReply{true, "", "db", 41, "a", "m1", request.For - 1}},
		"no":              {secret, promising, promiseReply{false, "", "db", 41, "a", "m1", request.For}},
	} {
		synctest.Test(t, func(t *testing.T) {
			if err := promisedBy(t, c.secret, c.purpose, c.w); err == nil {
				t.Errorf("%s: taken for a promise", name)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		if err := promisedBy(t, secret, promising, promiseReply{true, "", "db", 41, "a", "m1", request.For}); err != nil {
			t.Errorf("an honest one: %v", err)
		}
	})
}

// promisedBy asks somebody who answers with a promiseReply of his own.
func promisedBy(t *testing.T, with []byte, purpose string, w promiseReply) error {
	m := Method{Keys: Shared(secret), Dial: func(context.Context, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			nonce := newNonce()
			_ = greet(theirs, nonce)
			_, mac, err := receive(theirs)
			if err != nil {
				return
			}
			body, _ := json.Marshal(w)
			_ = send(theirs, body, seal(with, purpose, nonce, mac, body))
		}()
		return ours, nil
	}}
	return m.Promise(t.Context(), "a:1", request)
}
