package web

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/supervisor/control"
)

func TestStatusIsTheClustersAndThisNodes(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.board.State(control.LocalStatus{Service: "db", Role: "active", Ready: true, Health: "ok", Token: 7, Reason: "no other node runs it", Since: b.began})
		b.board.Faulty("u.yaml:1:1: no")
		code, text := b.get("/api/v1/status")
		var got struct {
			Services []struct{ Service, Active string }
			Nodes    []struct{ Node string }
			Local    Local
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 {
			b.Fatalf("%d %s: %v", code, text, err)
		}
		if len(got.Services) != 2 || got.Services[0].Active != "a" || len(got.Nodes) != 1 {
			b.Errorf("cluster: %s", text)
		}
		l := got.Local
		if l.Node != "a" || l.Version != "1.2.3" || l.Session != "0x1" || l.LeaseMs != 60000 || !l.Writable || l.Fault == "" || len(l.Services) != 1 {
			b.Fatalf("local: %+v", l)
		}
		if s := l.Services[0]; s.Service != "db" || !s.Serving || s.Token != 7 || s.Since == nil || s.Reason == "" {
			b.Errorf("service: %+v", s)
		}
	})
}

func TestManyWhoAskAreOneReading(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.cluster.slow = 100 * time.Millisecond
		for range 3 {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if code, _ := b.get("/api/v1/status"); code != 200 {
						b.Errorf("%d", code)
					}
				})
			}
			wg.Wait()
		}
		if b.cluster.asked() != 1 {
			b.Errorf("%d readings", b.cluster.asked())
		}
		time.Sleep(freshness)
		if b.get("/api/v1/status"); b.cluster.asked() != 2 {
			b.Errorf("%d readings after a while", b.cluster.asked())
		}
	})
}

func TestAClusterThatCannotBeReadIsSaid(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.cluster.broken = errors.New("no ZooKeeper server answers")
		for _, path := range []string{"/api/v1/status", "/api/v1/history"} {
			if code, text := b.get(path); code != 503 || !strings.Contains(text, "no ZooKeeper server answers") {
				b.Errorf("%s: %d %s", path, code, text)
			}
		}
		b.cluster.change(func() { b.cluster.broken, b.cluster.slow = nil, time.Hour })
		time.Sleep(freshness)
		began := time.Now()
		if code, _ := b.get("/api/v1/status"); code != 503 || time.Since(began) > patience {
			b.Errorf("silence: %d after %v", code, time.Since(began))
		}
	})
}

func TestHistoryIsOfAServiceOrOfAllAndBounded(t *testing.T) {
	inBubble(t, func(b *bed) {
		for i := range 150 {
			b.cluster.history = append(b.cluster.history, control.HistoryEntry{Service: []string{"db", "web"}[i%2], Token: int64(i)})
		}
		for path, want := range map[string]int{"": 100, "?number=0": 150, "?number=7": 7, "?service=db": 75, "?service=db&number=2": 2} {
			code, text := b.get("/api/v1/history" + path)
			var got struct{ Activations []control.HistoryEntry }
			if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 || len(got.Activations) != want {
				b.Errorf("%q: %d, %d entries: %v", path, code, len(got.Activations), err)
			}
		}
		for path, want := range map[string]int{"?service=x": 404, "?number=x": 400, "?number=-1": 400} {
			if code, text := b.get("/api/v1/history" + path); code != want {
				b.Errorf("%q: %d %s", path, code, text)
			}
		}
	})
}
