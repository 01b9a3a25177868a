package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/e2e/kit"
)

// Somebody in a hurry asks about 50 services on 3 nodes, from cold: the process is started each time.
func TestStatusOfAFleetAnswersAtOnce(t *testing.T) {
	const services, nodes, times, most = 50, 3, 60, 150 * time.Millisecond
	f := newFleet(t, services, 100*time.Millisecond)
	for _, name := range []string{"a", "b", "c"} {
		f.start(t, f.Lab.Host(t, name))
	}
	op := f.Lab.Host(t, "op")
	kit.Until(t, time.Minute, "everybody has said what it is", func() bool {
		var s struct {
			Services []struct {
				Active  string
				Members []struct{}
			}
		}
		if json.Unmarshal([]byte(op.Ask(t, f.asking("status", "--json")...).Out), &s) != nil || len(s.Services) != services {
			return false
		}
		for _, v := range s.Services {
			if v.Active == "" || len(v.Members) != nodes {
				return false
			}
		}
		return true
	})
	for _, c := range []struct {
		words []string
		lines int
	}{{[]string{"status"}, 1 + services*nodes}, {[]string{"status", "s0007"}, 1 + nodes}, {[]string{"history"}, 1 + 20}} {
		var took []time.Duration
		for range times {
			began := time.Now()
			r := op.Ask(t, f.asking(c.words...)...)
			took = append(took, time.Since(began))
			if n := strings.Count(r.Out, "\n"); r.Code != 0 || n != c.lines {
				t.Fatalf("%v: %d lines, %+v", c.words, n, r)
			}
		}
		t.Logf("%v of %d services on %d nodes: median %v, p95 %v", c.words, services, nodes,
			kit.Median(took).Round(time.Millisecond/10), kit.Quantile(took, 0.95).Round(time.Millisecond/10))
		if kit.Median(took) > most {
			t.Errorf("%v: the median is more than %v", c.words, most)
		}
	}
}
