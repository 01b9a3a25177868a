package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/control"
	"understudy/supervisor/testbed/must"
)

const pauseDB = "/api/v1/services/db/pause"

func TestWhoShowsTheTokenMayPauseAndResume(t *testing.T) {
	inBubble(t, func(b *bed) {
		for _, c := range []struct {
			path, body string
			code       int
			want       string // of the answer
			paused     string // of db, afterwards
		}{
			{pauseDB, `{"reason": "new disks"}`, 200, `"changed":true`, "new disks by a client"},
			{pauseDB, ``, 200, `"changed":false`, " by a client"},
			{"/api/v1/services/db/resume", ``, 200, `"changed":true`, ""},
			{pauseDB, `{`, 400, "JSON", ""},
			{pauseDB, strings.Repeat("x", largestBody+1), 400, "it is longer than 4096 bytes", ""},
			{"/api/v1/services/x/pause", ``, 404, "", ""},
			{"/api/v1/services/db/explode", ``, 404, "explode", ""},
			{pauseDB, `{"why": "new disks"}`, 400, "unknown key", ""},
			{pauseDB, `{} {}`, 400, "JSON", ""},
			{pauseDB, `{"to": "b"}`, 400, "only a switchover", ""},
			{pauseDB, `{"reason": "` + strings.Repeat("x", 1001) + `"}`, 400, "reason is 1001 bytes long: at most 1000 are allowed", ""},
		} {
			code, text, _ := b.ask("POST", c.path, c.body, "Authorization", "bearer sesame")
			if code != c.code || !strings.Contains(text, c.want) {
				b.Errorf("%s %.40s: %d %s", c.path, c.body, code, text)
			}
			if now := b.cluster.paused["db"]; !strings.HasPrefix(now, c.paused) || c.paused == "" && now != "" {
				b.Errorf("%s %.40s: db is %q", c.path, c.body, now)
			}
		}
		if code, _ := b.get(pauseDB); code != 405 {
			b.Errorf("GET: %d", code)
		}
	})
}

func TestANodeIsDrainedOverHTTP(t *testing.T) {
	inBubble(t, func(b *bed) {
		for _, c := range []struct {
			path, body string
			code       int
			want       string // of the answer
			ordered    string
		}{
			{"/api/v1/nodes/a/drain", `{"reason": "disks", "force": true}`, 200, `"changed":true,"drained":true,"node":"a","services":[{"service":"db"}]`, "drain atruedisksa client"},
			{"/api/v1/nodes/a/undrain", ``, 200, `"changed":false,"drained":false,"node":"a"`, "undrain a"},
			{"/api/v1/nodes/a/drain", `{"to": "b"}`, 400, "only a switchover", ""},
			{"/api/v1/nodes/a/undrain", `{"force": true}`, 400, "only a switchover", ""},
			{"/api/v1/nodes/a/pause", ``, 404, "drain, undrain", ""},
			{"/api/v1/nodes/a%2fb/drain", ``, 404, "not a node name", ""},
		} {
			b.cluster.change(func() { b.cluster.orders = nil })
			code, text, _ := b.ask("POST", c.path, c.body, "Authorization", "bearer sesame")
			if code != c.code || !strings.Contains(text, c.want) {
				b.Errorf("%s %s: %d %s", c.path, c.body, code, text)
			}
			if now := b.cluster.ordered(); !strings.HasPrefix(now, c.ordered) || c.ordered == "" && now != "" {
				b.Errorf("%s %s: %q", c.path, c.body, now)
			}
		}
		if code, text, _ := b.ask("POST", "/api/v1/nodes/a/drain", ""); code != 401 {
			b.Errorf("without the token: %d %s", code, text)
		}
	})
}

func TestWithoutTheTokenNothingChanges(t *testing.T) {
	inBubble(t, func(b *bed) {
		try := func(want int, header string) {
			b.Helper()
			code, _, h := b.ask("POST", pauseDB, "", "Authorization", header)
			if code != want || code == 401 && h.Get("WWW-Authenticate") == "" {
				b.Errorf("%q: %d %v", header, code, h)
			}
		}
		for _, header := range []string{"", "Bearer", "Bearer ", "Bearer x", "Bearer sesame2", "Bearer sesam", "Basic sesame", "sesame"} {
			try(401, header)
		}
		for _, path := range []string{"/api/v1/services/db/explode", "/api/v1/services/x/switchover", "/api/v1/token"} {
			if code, text, _ := b.ask("POST", path, "{"); code != 401 {
				b.Errorf("%s: %d %s", path, code, text)
			}
		}
		b.token = "other"
		try(401, "Bearer sesame") // it is read anew
		b.token = ""
		try(403, "Bearer ")
		b.token = "sesame"
		b.server.cfg.Token = func() (string, error) { return "", nil }
		try(401, "Bearer ")
		b.server.cfg.Token = nil
		try(403, "Bearer sesame")
		if len(b.cluster.paused) > 0 {
			b.Errorf("paused: %v", b.cluster.paused)
		}
		b.server.cfg.Token = func() (string, error) { return "sesame", nil }
		try(200, "Bearer sesame")
	})
}

func (b *bed) order(service, order, body string) (int, string) {
	b.Helper()
	code, text, _ := b.ask("POST", "/api/v1/services/"+service+"/"+order, body, "Authorization", "Bearer sesame")
	return code, text
}

func TestOrdersAreCarriedOutAndLogged(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.cluster.change(func() { b.cluster.lengthy = 50 * time.Second }) // longer than any other answer may take
		for _, c := range []struct{ order, body, answer, done string }{
			{"switchover", `{"to": "b", "force": true, "reason": "new disks"}`, `"active":"b"`, "switchover dbbtruea client"},
			{"switchover", ``, `"steps":["a is asked"]`, "switchover dbfalsea client"},
			{"restart", ``, `"took_ms":50000`, "restart dba client"},
			{"restart", `{"node": "b"}`, `"node":"b"`, "restart db on b by a client"},
			{"reload", `{"node": "b"}`, `"service":"db"`, "reload db on b by a client"},
			{"reclone", `{"node": "b"}`, `"node":"b"`, "reclone db on b by a client"},
			{"reload", `{}`, `"service":"db"`, "reload dba client"},
		} {
			b.cluster.change(func() { b.cluster.orders = nil })
			code, text := b.order("db", c.order, c.body)
			if code != 200 || !strings.Contains(text, c.answer) || !strings.HasPrefix(b.cluster.ordered(), c.done) {
				b.Errorf("%s %s: %d %s; done: %q", c.order, c.body, code, text, b.cluster.ordered())
			}
		}
		for _, want := range []string{`order=switchover`, `why="new disks"`, `step="a is asked"`, `the order is done: by="a client at 10.0.0.1 over HTTP" order=reload service=db`} {
			if !strings.Contains(b.log.String(), want) {
				b.Errorf("the log does not say %q:\n%s", want, b.log)
			}
		}
	})
}

func TestWhatIsNotDoneIsSaid(t *testing.T) {
	inBubble(t, func(b *bed) {
		for want, err := range map[int]error{
			404: fmt.Errorf("no node: %w", control.ErrUnknown), 409: fmt.Errorf("%w: a is active already", control.ErrRefused), 503: errors.New("ZooKeeper is away"),
		} {
			b.cluster.change(func() { b.cluster.refusal = err })
			for _, order := range []string{"switchover", "restart", "reload"} {
				if code, text := b.order("db", order, ""); code != want || !strings.Contains(text, err.Error()) {
					b.Errorf("%s: %v: %d %s", order, err, code, text)
				}
			}
		}
		b.cluster.change(func() { b.cluster.refusal = errors.New("no node (--force drains one that is not connected)") })
		if _, text := b.order("db", "switchover", ""); !strings.Contains(text, `({\"force\": true} drains one`) {
			b.Errorf("it names flags: %s", text)
		}
		b.cluster.change(func() { b.cluster.refusal, b.cluster.lengthy = nil, time.Hour })
		if code, text := b.order("x", "restart", ""); code != 404 {
			b.Errorf("%d %s", code, text)
		}
		began := time.Now()
		if code, text := b.order("db", "switchover", ""); code != 504 || time.Since(began) != orderPatience {
			b.Errorf("%d %s after %v", code, text, time.Since(began))
		}
		if !strings.Contains(b.log.String(), "not done") {
			b.Errorf("the log: %s", b.log)
		}
	})
}

func TestAnOrderIsDoneAlsoWhenWhoAskedHasGone(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.cluster.change(func() { b.cluster.lengthy = 30 * time.Second })
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://understudy/api/v1/services/db/restart", nil)
		must.OK(b, err)
		req.Header.Set("Authorization", "Bearer sesame")
		if resp, err := b.client.Do(req); err == nil {
			resp.Body.Close()
			b.Fatal("it was answered")
		}
		time.Sleep(time.Minute)
		if b.cluster.ordered() == "" {
			b.Error("it was not done")
		}
	})
}

func TestTooManyOrdersAreTurnedAway(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.cluster.change(func() { b.cluster.lengthy = 40 * time.Second })
		codes := make(chan int)
		for range mostOrders + 1 {
			go func() { code, _ := b.order("db", "restart", ""); codes <- code }()
		}
		count := map[int]int{}
		for range mostOrders + 1 {
			count[<-codes]++
		}
		if count[200] != mostOrders || count[503] != 1 {
			b.Errorf("%v", count)
		}
	})
}
