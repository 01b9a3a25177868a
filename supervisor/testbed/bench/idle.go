package main

import (
	"fmt"
	"strings"
	"time"

	"understudy/supervisor/testbed/kit"
)

// idle measures what an active one and a standby cost while nothing happens.
func (b *bench) idle(while time.Duration) {
	head(fmt.Sprintf("idle, over %v (lease 3s)", while))
	b.scene(func() {
		p := b.play(kit.Options{}, "every=100ms")
		proxies, servers := b.stage.Lab.Proxies(b, b.stage.Servers)
		p.Options.ZK = servers
		active, _ := p.Active(b, b.stage.Lab.Here("a"))
		b.watch("active", active, while)
		standby := p.Standby(b, b.stage.Lab.Here("b"))
		kinds := map[string]int{}
		for _, proxy := range proxies {
			proxy.Seen()
		}
		b.watch("standby", standby, while)
		for _, proxy := range proxies {
			for _, r := range proxy.Seen() {
				kinds[r.String()]++
			}
		}
		for kind, n := range kinds {
			fact("requests of both together: "+kind, "%.1f per second", float64(n)/while.Seconds())
		}
	})
}

// watch prints memory and processor time of a supervisor with its guardians.
func (b *bench) watch(what string, s *kit.Supervisor, while time.Duration) {
	pids := append(s.TwoGuardians(b), s.Pid)
	var cpu, pss, code int64
	for _, pid := range pids {
		cpu -= kit.CPU(pid)
	}
	began := time.Now()
	<-time.After(while) // what it costs to wait is measured
	took := time.Since(began)
	var each []string
	for _, pid := range pids {
		cpu += kit.CPU(pid)
		one, files := kit.PSS(pid)
		pss, code = pss+one, code+files
		each = append(each, fmt.Sprintf("%.1f", float64(one)/(1<<20)))
	}
	fact(what+": memory of supervisor and guardians (PSS)", "%.1f MiB (%s), %.1f of it code", float64(pss)/(1<<20), strings.Join(each, " + "), float64(code)/(1<<20))
	fact(what+": processor time", "%.3f %%", 100*float64(cpu)/float64(took))
}
