package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
)

// BenchmarkFiftyServices measures what looking at 50 services on 3 nodes takes: go test -run - -bench FiftyServices
// -benchtime 1x ./supervisor/testbed/e2e
func BenchmarkFiftyServices(b *testing.B) {
	const services = 50
	s := stage(b)
	root := fmt.Sprint("/e2e-fifty", time.Now().UnixNano())
	hosts := []*kit.Host{s.Lab.Host(b, "a"), s.Lab.Host(b, "b"), s.Lab.Host(b, "c")}
	op := s.Lab.Host(b, "op")
	asks := func(words ...string) []string {
		return append(words, "--zk", strings.Join(s.Servers, ","), "--root", root)
	}
	var supervisors []*kit.Supervisor
	for _, h := range hosts {
		text := fmt.Sprintf("node: %s\nzookeeper: {servers: [\"%s\"], root: %s}\nhttp: {listen: \":8437\"}\nservices:\n", h.Name, strings.Join(s.Servers, `", "`), root)
		for i := range services {
			text += fmt.Sprintf("  service-%02d: {command: [sleep, 100000], moves: {max: 1000}}\n", i)
		}
		file := filepath.Join(b.TempDir(), h.Name+".yaml")
		must(b, os.WriteFile(file, []byte(text), 0o600))
		supervisors = append(supervisors, h.Understudy(b, "run", "--config", file))
	}
	url := address(hosts[2], "")
	kit.Until(b, 4*soon, "all services are active, and have two standbys each", func() bool { return settled(url, services) })
	for i := range services { // something to draw
		if r := op.Ask(b, asks("switchover", fmt.Sprintf("service-%02d", i))...); r.Code != 0 {
			b.Fatalf("%s%s", r.Out, r.Err)
		}
	}
	kit.Until(b, 4*soon, "all have settled", func() bool { return settled(url, services) })

	b.Run("api", func(b *testing.B) {
		measure(b, 100, func() {
			if code, text := fetch(url + "/api/v1/status"); code != http.StatusOK || len(text) < services*100 {
				b.Fatalf("%d %s", code, text)
			}
		})
	})
	b.Run("command", func(b *testing.B) {
		measure(b, 40, func() {
			if r := op.Ask(b, asks("status")...); r.Code != 0 || strings.Count(r.Out, "active") < services {
				b.Fatalf("%s%s", r.Out, r.Err)
			}
		})
	})
	b.Run("paint", func(b *testing.B) { paint(b, url+"/", services) })
	b.Run("watchers", func(b *testing.B) {
		supervisor := supervisors[2].Pid
		cpu := func(watchers int, meanwhile func()) {
			spent, began := -kit.CPU(supervisor), time.Now()
			meanwhile()
			b.ReportMetric(100*float64(spent+kit.CPU(supervisor))/float64(time.Since(began)), fmt.Sprint(watchers, "-%cpu"))
		}
		still := func() { <-time.After(10 * time.Second) } // what it costs that nothing happens is measured
		cpu(0, still)
		stop := watch(b, url+"/api/v1/events", 1)
		cpu(1, still)
		stop()
		stop = watch(b, url+"/api/v1/events", 100)
		defer stop()
		cpu(100, still)
		spent, began := -kit.CPU(supervisor), time.Now()
		for i := range 10 {
			op.Ask(b, asks("switchover", fmt.Sprintf("service-%02d", i))...)
			<-time.After(time.Second) // the load's own pace
		}
		b.ReportMetric(100*float64(spent+kit.CPU(supervisor))/float64(time.Since(began)), "100-moving-%cpu")
	})
}

// settled tells whether all services are active, and have two standbys each.
func settled(url string, services int) bool {
	_, text := fetch(url + "/api/v1/status")
	var got struct {
		Services []struct{ Members []struct{ Role string } }
	}
	if json.Unmarshal([]byte(text), &got) != nil {
		return false
	}
	roles := map[string]int{}
	for _, s := range got.Services {
		for _, m := range s.Members {
			roles[m.Role]++
		}
	}
	return roles["active"] == services && roles["standby"] == 2*services
}

func fetch(url string) (code int, text string) {
	resp, err := http.Get(url) //nolint:noctx // the benchmark ends with its supervisors
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

// measure reports how long f takes. What one reading found is not good for the next: there is time in between.
func measure(b *testing.B, times int, f func()) {
	b.Helper()
	f()
	var all []time.Duration
	for range times {
		<-time.After(300 * time.Millisecond)
		began := time.Now()
		f()
		all = append(all, time.Since(began))
	}
	report(b, "", all)
}

func report(b *testing.B, what string, all []time.Duration) {
	b.ReportMetric(float64(kit.Median(all).Microseconds())/1000, what+"median-ms")
	b.ReportMetric(float64(kit.Quantile(all, 0.95).Microseconds())/1000, what+"p95-ms")
	b.ReportMetric(0, "ns/op")
}

// paint reports when a browser shows something first, and when it shows all services and the first pictures.
func paint(b *testing.B, url string, services int) {
	page := browse(b)
	var first, whole []time.Duration
	for range 20 {
		page.open(url)
		got := js[string](page, `new Promise(done => {
			const look = () => {
				const paint = performance.getEntriesByName('first-contentful-paint')[0];
				if (paint && document.querySelectorAll('article .word').length === %d && [...document.querySelectorAll('article canvas')].every(c => c.width !== 300))
					requestAnimationFrame(() => done(JSON.stringify([paint.startTime, performance.now()])));
				else setTimeout(look, 1);
			};
			look();
		})`, services)
		var ms [2]float64
		must(b, json.Unmarshal([]byte(got), &ms))
		first = append(first, time.Duration(ms[0]*float64(time.Millisecond)))
		whole = append(whole, time.Duration(ms[1]*float64(time.Millisecond)))
	}
	report(b, "first-paint-", first)
	report(b, "all-shown-", whole)
}

// watch follows the events so many times, until it is stopped.
func watch(b *testing.B, url string, watchers int) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	client := &http.Client{Transport: &http.Transport{}}
	done := make(chan struct{}, watchers)
	for range watchers {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		must(b, err)
		resp, err := client.Do(req)
		must(b, err)
		go func() {
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body) // until it is stopped
			done <- struct{}{}
		}()
	}
	return func() {
		cancel()
		for range watchers {
			<-done
		}
	}
}
