package e2e

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/e2e/kit"
	"understudy/supervisor/e2e/kit/tick"
)

// outages asks a load balancer all the time who serves, and collects how long nobody did, from the first request that failed
// in each round to the last.
type outages struct {
	round atomic.Int64
	all   []outage
	stop  chan struct{}
	done  chan struct{}
}

type outage struct {
	round    int64
	from, to time.Time
	still    time.Duration // of that the machine stood still
}

func watchOutages(t *testing.T, front string) *outages {
	t.Helper()
	o, stood := &outages{stop: make(chan struct{}), done: make(chan struct{})}, kit.Stood(t)
	go func() {
		defer close(o.done)
		well, failed := time.Now(), false
		again := time.NewTicker(10 * time.Millisecond)
		defer again.Stop()
		for {
			if whoAnswers(front) == "" {
				failed = true
			} else {
				now, last, still := time.Now(), len(o.all)-1, stood()
				switch round := o.round.Load(); {
				case failed && last >= 0 && o.all[last].round == round:
					o.all[last].to, o.all[last].still = now, max(o.all[last].still, still)
				case failed:
					o.all = append(o.all, outage{round, well, now, still})
				}
				well, failed = now, false
			}
			select {
			case <-again.C:
			case <-o.stop:
				return
			}
		}
	}()
	return o
}

func (o *outages) end() (all []time.Duration) {
	close(o.stop)
	<-o.done
	for _, one := range o.all {
		all = append(all, one.to.Sub(one.from)-one.still)
	}
	return all
}

// Switchovers in a row, back and forth, under a client that goes through HAProxy: one short outage each, and every
// command succeeds.
func TestSwitchoversBehindALoadBalancer(t *testing.T) {
	t.Parallel()
	need.These(t, "haproxy")
	p := newPlay(t, stage(t), "answer=:6379")
	p.Options.Flags = []string{"--http", ":8437"}
	hosts := []*kit.Host{p.Lab.Host(t, "a"), p.Lab.Host(t, "b")}
	op := p.Lab.Host(t, "op")
	front := throughHAProxy(t, p.Options.Service, hosts[0].Addr, hosts[1].Addr)
	p.Active(t, hosts[0])
	p.Standby(t, hosts[1])
	kit.Until(t, soon, "clients are sent to a", func() bool { return whoAnswers(front) == "a" })
	seen := watchOutages(t, front)
	const times = 10
	var gaps, commands []time.Duration
	for i := range times {
		to, former := hosts[1-i%2], p.Runs()[i]
		kit.Until(t, soon, to.Name+" stands by", func() bool {
			m, ok := p.Member(p.Options.Service, to.Name)
			return ok && m.Role == "standby"
		})
		seen.round.Add(1)
		at := tick.Now()
		p.order(t, op, "switchover", p.Options.Service, "--to", to.Name)
		commands = append(commands, time.Duration(tick.Now()-at))
		run := p.On(t, soon, to.Name, at)
		gaps = append(gaps, kit.Gap(p.Runs()[i], run))
		if former.Node == to.Name {
			t.Fatalf("switchover %d: %s had it already", i, to.Name)
		}
		kit.Until(t, soon, "clients are sent to "+to.Name, func() bool { return whoAnswers(front) == to.Name })
		if code := says(t, fmt.Sprintf("http://%s:8437/active/%s", to.Addr, p.Options.Service)); code != http.StatusOK {
			t.Errorf("/active says %d on %s", code, to.Name)
		}
	}
	all := seen.end()
	t.Logf("gaps between children: %s", kit.Summary(gaps))
	t.Logf("commands: %s", kit.Summary(commands))
	t.Logf("outages for clients of HAProxy: %d, %s", len(all), kit.Summary(all))
	if n := len(p.Runs()); n != times+1 {
		t.Errorf("%d runs", n)
	}
}
