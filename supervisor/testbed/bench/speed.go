package main

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// raw measures the least that a hand-over can take: what ZooKeeper needs to tell one client of another one's deletion and
// to take its create, and what the kernel needs to start the program.
func (b *bench) raw() {
	head("the bare minimum")
	chain := b.rawChain()
	b.chain = figure("ZooKeeper: delete -> watch -> create", chain)
	b.exec = figure("fork and exec, until the program's first statement", b.rawExec())
}

func (b *bench) rawChain() []time.Duration {
	one, other := b.client(), b.client()
	const lock = "/bench-lock"
	acl := zk.WorldACL(zk.PermAll)
	if _, err := one.Create(lock, nil, zk.FlagEphemeral, acl); err != nil {
		b.Fatalf("create: %v", err)
	}
	var all []time.Duration
	for range 4 * b.times {
		there, _, events, err := other.ExistsW(lock)
		for ; err == nil && !there; there, _, events, err = other.ExistsW(lock) {
			<-events // its server lags behind
		}
		if err != nil {
			b.Fatalf("watch: %v", err)
		}
		began := time.Now()
		go func() { _ = one.Delete(lock, -1) }() // its success shows in the watch
		<-events
		if _, err := other.Create(lock, nil, zk.FlagEphemeral, acl); err != nil {
			b.Fatalf("create: %v", err)
		}
		all = append(all, time.Since(began))
		one, other = other, one
	}
	return all
}

func (b *bench) client() *zk.Conn { return kit.Look(b, b.stage.Servers, "/").Conn() }

func (b *bench) rawExec() []time.Duration {
	accounts := kit.NewAccounts(b, b.stage.Lab)
	args := accounts.Child()
	var all []time.Duration
	for range b.times {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(cmd.Environ(), "UNDERSTUDY_NODE=raw", "UNDERSTUDY_TOKEN=1")
		began := tick.Now()
		if err := cmd.Start(); err != nil {
			b.Fatalf("start the child: %v", err)
		}
		run := accounts.Next(b, kit.Soon, began)
		all = append(all, time.Duration(run.First-began))
		if err := cmd.Process.Kill(); err != nil {
			b.Fatalf("kill the child: %v", err)
		}
		_ = cmd.Wait() // it was killed
	}
	return all
}

// coldStart measures from the start of the program to the first statement of its child.
func (b *bench) coldStart() {
	head("cold start")
	p := b.play(kit.Options{})
	h := b.stage.Lab.Here("cold")
	var all []time.Duration
	for range b.times {
		began := tick.Now()
		s := p.Start(b, h)
		run := p.On(b, kit.Soon, h.Name, began)
		all = append(all, time.Duration(run.First-began))
		s.Stop(b)
	}
	figure("understudy run ... to the running child", all)
}

// handOver measures how long nobody runs.
func (b *bench) handOver() {
	head("hand-over (gap: from the last sign of life of the one child to the first statement of the other)")
	stop := func(s *kit.Supervisor) { s.Signal(syscall.SIGTERM) }
	gaps, _ := b.relay(b.times, stop, kit.Options{})
	gap := figure("clean stop (SIGTERM), gap", gaps)
	if b.chain > 0 {
		fact("  of that, without the program's own start", "%.1f x the raw chain", float64(gap-b.exec)/float64(b.chain))
	}
	gaps, outages := b.relay(b.times, (*kit.Supervisor).Kill9, kit.Options{})
	figure("supervisor killed -9, gap", gaps)
	figure("supervisor killed -9, from the signal", outages)
	gaps, _ = b.relay(min(b.times, 20), (*kit.Supervisor).Kill9, kit.Options{}, "term=ignore", "children=5", "daemons=5", "every=2ms")
	figure("the same with 16 processes that ignore SIGTERM, gap", gaps)
	gaps, _ = b.relay(b.times, stop, kit.Options{Flags: []string{"--election", "queue"}})
	figure("clean stop in a queue, gap", gaps)
}

func (b *bench) relay(times int, fault func(*kit.Supervisor), o kit.Options, words ...string) (gaps, outages []time.Duration) {
	b.scene(func() {
		p := b.play(o, words...)
		gaps, outages = p.Relay(b, times, b.stage.Lab.Here("a"), b.stage.Lab.Here("b"), fault)
		p.CheckOverlap(b)
	})
	return gaps, outages
}

// faults measures those after which the session has to end by itself.
func (b *bench) faults() {
	const session, grace = 4 * time.Second, time.Second
	head(fmt.Sprintf("silent faults (session timeout %v, grace %v; from the fault)", session, grace))
	for _, f := range []struct {
		name   string
		strike func(p *kit.Play, s *kit.Supervisor)
	}{
		{"supervisor frozen", func(_ *kit.Play, s *kit.Supervisor) { s.Signal(syscall.SIGSTOP) }},
		{"host cut off", func(_ *kit.Play, s *kit.Supervisor) { s.Host.Cut(b) }},
		{"machine gone", b.power},
	} {
		var dead, back []time.Duration
		for range 3 {
			b.scene(func() {
				p := b.play(kit.Options{Session: session, Grace: grace})
				s, _, run := p.Pair(b, b.stage.Lab.Host(b, "a"), b.stage.Lab.Host(b, "b"))
				at := tick.Now()
				f.strike(p, s)
				next := p.On(b, 2*kit.Soon, "b", run.First)
				dead = append(dead, time.Duration(p.Runs()[0].Last-at))
				back = append(back, time.Duration(next.First-at))
				s.Host.Heal(b)
				p.CheckOverlap(b)
			})
		}
		figure(f.name+": the child is dead", dead)
		figure(f.name+": the other one runs", back)
	}
}

// power kills all that runs on the active machine at once.
func (b *bench) power(p *kit.Play, s *kit.Supervisor) {
	kit.KillAtOnce(append(append(s.TwoGuardians(b), s.Pid), p.Processes()...)...)
}
