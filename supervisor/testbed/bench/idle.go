package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"understudy/supervisor/testbed/kit"
)

// idle measures what an active one and a standby cost while nothing happens.
func (b *bench) idle(while time.Duration) {
	head(fmt.Sprintf("idle, over %v (session timeout 6s)", while))
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
	b.scene(func() { b.hundred(while) })
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

// hundred measures one supervisor with a hundred services.
func (b *bench) hundred(while time.Duration) {
	accounts := kit.NewAccounts(b, b.stage.Lab)
	var conf strings.Builder
	fmt.Fprintf(&conf, "node: hundred\nzookeeper: {servers: [%q], root: /bench-hundred}\nservices:\n", strings.Join(b.stage.Servers, `", "`))
	text := strings.ReplaceAll(conf.String(), `\"`, `"`)
	for i := range 100 {
		text += fmt.Sprintf("  s%d: {command: [%s]}\n", i, strings.Join(accounts.Child("every=1s", fmt.Sprint("service=", i)), ", "))
	}
	path := filepath.Join(b.TempDir(), "hundred.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	s := b.stage.Lab.Here("hundred").Understudy(b, "run", "--config", path)
	took := kit.Until(b, time.Minute, "a hundred children run", func() bool { return len(accounts.Runs()) == 100 })
	fact("100 services in one supervisor: all run after", "%v", took.Round(time.Millisecond))
	b.watch("100 services", s, while)
	for _, what := range []string{"task", "fd"} {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", s.Pid, what))
		if err != nil {
			b.Fatal(err)
		}
		fact("100 services: entries of the supervisor's /proc/PID/"+what, "%d", len(entries))
	}
}
