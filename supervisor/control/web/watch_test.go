package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/testbed/must"
)

// follower is a client that follows the events.
type follower struct {
	*bed
	lines *bufio.Reader
	stop  func()
}

func (b *bed) follow() *follower {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://understudy/api/v1/events", nil)
	must.OK(b, err)
	resp, err := b.client.Do(req)
	must.OK(b, err)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		b.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	return &follower{bed: b, lines: bufio.NewReader(resp.Body), stop: func() { cancel(); _ = resp.Body.Close() }}
}

// next is the next event, or comment.
func (f *follower) next() (kind, data string) {
	f.Helper()
	for {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			f.Fatalf("the events end: %v", err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			switch {
			case value != "":
				return "comment", value
			case kind != "":
				return kind, data
			}
		}
	}
}

// expect reads events until the kinds are those wanted, and fails when another one comes.
func (f *follower) expect(kinds ...string) (data []string) {
	f.Helper()
	for _, want := range kinds {
		kind, text := f.next()
		if kind != want {
			f.Fatalf("%s %s, and not %s", kind, text, want)
		}
		data = append(data, text)
	}
	return data
}

func (b *bed) role(service, node string, role election.Role) {
	b.cluster.change(func() { b.cluster.services[service][node] = role })
}

func TestAWatcherIsToldEachChange(t *testing.T) {
	inBubble(t, func(b *bed) {
		f := b.follow()
		defer f.stop()
		whole := f.expect("status")[0]
		if !strings.Contains(whole, `"service":"web"`) || !strings.Contains(whole, `"local":{"node":"a"`) {
			b.Errorf("%s", whole)
		}
		began := time.Now()
		b.role("db", "a", "stopping")
		got := f.expect("status")[0]
		if took := time.Since(began); took > time.Second {
			b.Errorf("told after %v", took)
		}
		if !strings.Contains(got, `"role":"stopping"`) {
			b.Errorf("%s", got)
		}
		b.cluster.change(func() {
			delete(b.cluster.services, "db")
			b.cluster.services["new"] = map[string]election.Role{"a": election.RoleStandby}
		})
		if got := f.expect("status")[0]; strings.Contains(got, `"service":"db"`) || !strings.Contains(got, `"service":"new"`) {
			b.Errorf("%s", got)
		}
		b.cluster.change(func() { b.cluster.drained = []control.DrainedNode{{Node: "a", By: "ann"}} })
		if got := f.expect("status")[0]; !strings.Contains(got, `"drained":[{"node":"a"`) {
			b.Errorf("%s", got)
		}
		b.cluster.change(func() { b.cluster.gone = []control.GoneNode{{Node: "b", Bare: 1}} })
		if got := f.expect("status")[0]; !strings.Contains(got, `"gone":[{"node":"b"`) {
			b.Error(got)
		}
	})
}

func TestWhatHappensHereIsToldAtOnce(t *testing.T) {
	inBubble(t, func(b *bed) {
		f := b.follow()
		defer f.stop()
		f.expect("status")
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		began := time.Now()
		b.role("db", "a", "stopping")
		b.board.State(control.LocalStatus{Service: "db", Role: "stopping"})
		f.expect("status")
		if took := time.Since(began); took > 2*settling {
			b.Errorf("told after %v", took)
		}
	})
}

func TestAWatcherThatComesBackIsToldWhatIsNow(t *testing.T) {
	inBubble(t, func(b *bed) {
		f := b.follow()
		f.expect("status")
		f.stop()
		b.role("db", "a", "stopping")
		f = b.follow()
		defer f.stop()
		for began := time.Now(); !strings.Contains(f.expect("status")[0], `"role":"stopping"`); {
			if time.Since(began) > 2*pace {
				b.Fatal("it is told what was")
			}
		}
	})
}

func TestNobodyWatchingCostsNothing(t *testing.T) {
	inBubble(t, func(b *bed) {
		time.Sleep(time.Minute)
		f := b.follow()
		f.expect("status")
		if b.cluster.asked() > 3 {
			b.Errorf("%d readings for one watcher", b.cluster.asked())
		}
		f.stop()
		time.Sleep(time.Minute)
		reads := b.cluster.asked()
		b.role("db", "a", "standby")
		time.Sleep(time.Hour)
		if b.cluster.asked() != reads {
			b.Errorf("%d readings for nobody", b.cluster.asked()-reads)
		}
		f = b.follow()
		defer f.stop()
		if whole := f.expect("status")[0]; strings.Contains(whole, `"node":"a","role":"active"},{"node":"b","role":"standby"}]},{"service":"web"`) {
			b.Errorf("it is old: %s", whole)
		}
	})
}

func TestManyWatchersAreOneReader(t *testing.T) {
	inBubble(t, func(b *bed) {
		for range 100 {
			f := b.follow()
			defer f.stop()
			f.expect("status")
			go func() { _, _ = io.Copy(io.Discard, f.lines) }()
		}
		before := b.cluster.asked()
		time.Sleep(10 * time.Second)
		if n := b.cluster.asked() - before; n > int(10*time.Second/pace)+2 {
			b.Errorf("%d readings in 10 s", n)
		}
	})
}

func TestTroubleIsToldOnceAndItsEndToo(t *testing.T) {
	inBubble(t, func(b *bed) {
		b.cluster.broken = errors.New("no ZooKeeper server answers")
		f := b.follow()
		defer f.stop()
		if got := f.expect("trouble"); !strings.Contains(got[0], "no ZooKeeper server answers") {
			b.Errorf("%v", got)
		}
		b.cluster.change(func() { b.cluster.broken = nil })
		f.expect("status")
		b.cluster.change(func() { b.cluster.broken = errors.New("again") })
		f.expect("status", "trouble")
		time.Sleep(3 * pace)
		b.cluster.change(func() { b.cluster.broken = nil })
		b.role("db", "a", "stopping")
		if got := f.expect("status")[0]; !strings.Contains(got, `"role":"stopping"`) {
			b.Errorf("%v", got)
		}
	})
}

func TestASilentStreamShowsThatItLives(t *testing.T) {
	inBubble(t, func(b *bed) {
		f := b.follow()
		defer f.stop()
		f.expect("status")
		for range 5 {
			began := time.Now()
			if f.expect("comment"); time.Since(began) > beat {
				b.Errorf("silent for %v", time.Since(began))
			}
		}
	})
}

func TestAWatcherThatDoesNotReadIsDroppedAndHindersNobody(t *testing.T) {
	inBubble(t, func(b *bed) {
		c, err := b.dial()
		must.OK(b, err)
		defer c.Close()
		fmt.Fprint(c, "GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
		f := b.follow()
		defer f.stop()
		f.expect("status")
		b.role("db", "a", "stopping")
		f.expect("status")
		go func() { _, _ = io.Copy(io.Discard, f.lines) }()
		time.Sleep(writePatience + beat)
		if n := b.server.stream.watchers.Load(); n != 1 {
			b.Errorf("%d watchers are left", n)
		}
	})
}
