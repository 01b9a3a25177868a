package web

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/control"
)

func TestActiveIsSaidOnlyWhereTheServiceDoesItsWork(t *testing.T) {
	inBubble(t, func(b *bed) {
		for _, c := range []struct {
			state control.LocalStatus
			code  int
			line  string
		}{
			{control.LocalStatus{Role: "active", Ready: true, Health: "ok"}, 200, "active"},
			{control.LocalStatus{Role: "active", Ready: true, Health: "ok", Why: "paused by ops"}, 200, "active"},
			{control.LocalStatus{Role: "active", Health: "starting"}, 503, "starting"},
			{control.LocalStatus{Role: "active", Health: "ok"}, 503, "starting"},
			{control.LocalStatus{Role: "active", Ready: true, Health: "failing", Why: "FATAL: password of app is hunter2"}, 503, "failing"},
			{control.LocalStatus{Role: "standby", Ready: true, Health: "ok"}, 503, "standby"},
			{control.LocalStatus{Role: "stopping", Ready: true, Health: "ok", Why: "stop asked"}, 503, "stopping"},
			{control.LocalStatus{Role: "fencing", Health: "ok"}, 503, "fencing"},
			{control.LocalStatus{Role: "offline", Health: "ok"}, 503, "offline"},
		} {
			c.state.Service = "db"
			b.board.State(c.state)
			if code, text := b.get("/active/db"); code != c.code || text != c.line+"\n" {
				b.Errorf("%+v: %d %q", c.state, code, text)
			}
			if code, text, _ := b.ask("HEAD", "/active/db", ""); code != c.code || text != "" {
				b.Errorf("HEAD: %+v: %d %q", c.state, code, text)
			}
		}
		if code, text := b.get("/active/x"); code != 404 || !strings.Contains(text, `no service "x"`) {
			b.Errorf("unknown: %d %q", code, text)
		}
		if code, _, _ := b.ask("POST", "/active/db", ""); code != 405 {
			b.Errorf("POST: %d", code)
		}
		b.board.Gone("db")
		if code, _ := b.get("/active/db"); code != 404 {
			b.Errorf("one that is gone: %d", code)
		}
		if b.cluster.asked() != 0 {
			b.Errorf("ZooKeeper was asked %d times", b.cluster.asked())
		}
	})
}

func TestClientsAreSentToACopyThatFollows(t *testing.T) {
	inBubble(t, func(b *bed) {
		check := func(when string, code int, line string) {
			b.Helper()
			if got, text := b.get("/follower/db"); got != code || text != line+"\n" {
				b.Errorf("%s: %d %q", when, got, text)
			}
		}
		check("unknown", 404, `no service "db" on this node`)
		b.board.State(control.LocalStatus{Service: "db", Role: "active", Ready: true, Health: "ok"})
		check("no copy", 503, "no")
		why := ""
		var wishes []string
		b.board.State(control.LocalStatus{Service: "db", Role: "offline", Follows: func(w control.ReadWish) string {
			wish := fmt.Sprint(w.All)
			if w.Lag != nil {
				wish += fmt.Sprint(" ", *w.Lag)
			}
			wishes = append(wishes, wish)
			return why
		}})
		check("it follows, also without ZooKeeper", 200, "follower")
		for path, want := range map[string]string{"/follower/db?lag=1MiB": "follower", "/follower/db?lag=0": "follower", "/sync/db": "sync"} {
			if code, text := b.get(path); code != 200 || text != want+"\n" {
				b.Errorf("%s: %d %q", path, code, text)
			}
		}
		slices.Sort(wishes)
		if got := strings.Join(wishes, ", "); got != "false, false 0, false 1048576, true" {
			b.Errorf("it was asked %s", got)
		}
		for _, odd := range []string{"", "x", "-1", "1M", "99999999TiB", "%zz"} {
			if code, text := b.get("/follower/db?lag=" + odd); code != 400 || !strings.HasPrefix(text, "lag is not a size") {
				b.Errorf("lag=%s: %d %q", odd, code, text)
			}
		}
		why = "FATAL: password of app is hunter2"
		check("it does not, and only those who may read are told why", 503, "no")
		if code, text := b.get("/sync/db"); code != 503 || text != "no\n" {
			b.Errorf("%d %q", code, text)
		}
		if code, _ := b.get("/sync/x"); code != 404 {
			b.Errorf("unknown: %d", code)
		}
	})
}

func TestNothingIsActiveOrReadyWhenTheLeaseIsOver(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.board.State(control.LocalStatus{Service: "db", Role: "active", Ready: true, Health: "ok"})
		check := func(when string, active, ready int) {
			b.Helper()
			if code, text := b.get("/active/db"); code != active {
				b.Errorf("%s: active: %d %q", when, code, text)
			}
			if code, text := b.get("/readyz"); code != ready {
				b.Errorf("%s: ready: %d %q", when, code, text)
			}
			if code, _ := b.get("/healthz"); code != 200 {
				b.Errorf("%s: health: %d", when, code)
			}
		}
		check("the lease lasts", 200, 200)
		time.Sleep(time.Minute)
		check("the lease is over", 503, 503)
		b.board.Lease(control.LeaseStatus{Session: "0x1", End: time.Since(b.began) + time.Second})
		check("the lease is extended", 200, 200)
		b.board.Lease(control.LeaseStatus{})
		check("the session is over", 503, 503)
	})
}
