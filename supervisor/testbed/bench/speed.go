package main

import (
	"cmp"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

// floor measures the least that a switchover can take: what ZooKeeper needs to tell one client of another one's deletion and to take its
// create, and what the kernel needs to start the program. It is measured once before each switchover, so that what else the machine does
// meets both.
type floor struct {
	*bench
	one, other *zk.Conn
	accounts   *kit.Accounts
	chain      []time.Duration
	exec       []time.Duration
}

const floorLock = "/bench-lock"

func (b *bench) newFloor() *floor {
	f := &floor{bench: b, one: b.client(), other: b.client(), accounts: kit.NewAccounts(b, b.stage.Lab)}
	if _, err := f.one.Create(floorLock, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		b.Fatalf("create: %v", err)
	}
	return f
}

func (f *floor) measure() {
	f.chain = append(f.chain, f.handLock())
	f.exec = append(f.exec, f.startProgram())
}

func (f *floor) handLock() time.Duration {
	there, _, events, err := f.other.ExistsW(floorLock)
	for ; err == nil && !there; there, _, events, err = f.other.ExistsW(floorLock) {
		<-events // its server lags behind
	}
	if err != nil {
		f.Fatalf("watch: %v", err)
	}
	began := time.Now()
	from := f.one
	go func() { _ = from.Delete(floorLock, -1) }() // its success shows in the watch
	<-events
	if _, err := f.other.Create(floorLock, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		f.Fatalf("create: %v", err)
	}
	took := time.Since(began)
	f.one, f.other = f.other, f.one
	return took
}

func (b *bench) client() *zk.Conn { return kit.Look(b, b.stage.Servers, "/").Conn() }

func (f *floor) startProgram() time.Duration {
	args := f.accounts.Child()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(cmd.Environ(), "UNDERSTUDY_NODE=raw", "UNDERSTUDY_TOKEN=1")
	began := tick.Now()
	if err := cmd.Start(); err != nil {
		f.Fatalf("start the program: %v", err)
	}
	run := f.accounts.Next(f, kit.Soon, began)
	if err := cmd.Process.Kill(); err != nil {
		f.Fatalf("kill the program: %v", err)
	}
	_ = cmd.Wait() // it was killed
	return time.Duration(run.First - began)
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

// switchover measures how long nobody runs, beside the least that this can take on the same machine at the same time.
func (b *bench) switchover() {
	head("switchover (gap: from the last sign of life of the one program to the first statement of the other)")
	stop := func(s *kit.Supervisor) { s.Signal(syscall.SIGTERM) }
	for _, c := range []struct {
		what  string
		times int
		fault func(*kit.Supervisor)
		o     kit.Options
		words []string
	}{
		{"clean stop (SIGTERM)", b.times, stop, kit.Options{}, nil},
		{"supervisor killed -9", b.times, (*kit.Supervisor).Kill9, kit.Options{}, nil},
		{"the same with 16 processes that ignore SIGTERM", min(b.times, 20), (*kit.Supervisor).Kill9, kit.Options{}, []string{"term=ignore", "children=5", "daemons=5", "every=2ms"}},
		{"clean stop in a queue", b.times, stop, kit.Options{Flags: []string{"--election", "queue"}}, nil},
	} {
		b.scene(func() {
			f, p := b.newFloor(), b.play(c.o, c.words...)
			here := p.NewRelay(b, b.stage.Lab.Here("a"), b.stage.Lab.Here("b"))
			var other *kit.Relay
			if b.beside != "" {
				o := c.o
				o.Binary = b.beside
				other = b.play(o, c.words...).NewRelay(b, b.stage.Lab.Here("a"), b.stage.Lab.Here("b"))
			}
			for range c.times {
				f.measure()
				here.Turn(b, c.fault)
				if other != nil {
					other.Turn(b, c.fault)
				}
			}
			p.CheckOverlap(b)
			gap := figure(c.what+", gap", here.End(b))
			figure("  from the signal", here.Outages)
			chain := figure("  beside it: ZooKeeper, delete -> watch -> create", f.chain)
			start := figure("  beside it: fork and exec, to the first statement", f.exec)
			fact("  gap without the program's own start", "%.1f x the raw chain", float64(gap-start)/float64(chain))
			if other != nil {
				previous := figure("  beside it: the other binary, gap", other.End(b))
				fact("  its gap without the program's own start", "%.1f x the raw chain", float64(previous-start)/float64(chain))
				fact("  the gap", "%.2f x the other binary's", float64(gap)/float64(previous))
			}
			if b.timeline {
				timeline(p)
			}
		})
	}
}

// timeline prints what the supervisors logged between the last sign of life of the last program but one and the first of the last one.
func timeline(p *kit.Play) {
	runs := p.Runs()
	from, to := runs[len(runs)-2].Last, runs[len(runs)-1].First
	wall := func(t int64) time.Time { return time.Now().Add(-time.Duration(tick.Now() - t)) }
	var lines []string
	for _, s := range p.Started[max(0, len(p.Started)-4):] {
		for line := range strings.Lines(s.Log()) {
			word, rest, _ := strings.Cut(line, " ")
			at, err := time.Parse("2006-01-02T15:04:05.000Z0700", word)
			if err == nil && at.After(wall(from).Add(-20*time.Millisecond)) && at.Before(wall(to).Add(5*time.Millisecond)) {
				lines = append(lines, fmt.Sprintf("    %+6.1f ms  %s: %s", float64(at.Sub(wall(from)))/1e6, s.Host.Name, strings.TrimSpace(rest)))
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(stamp(a), stamp(b)) })
	fmt.Println(strings.Join(lines, "\n"))
}

func stamp(line string) (ms float64) {
	_, _ = fmt.Sscan(line, &ms)
	return ms
}

// faults measures those after which a lease has to run out, with the default and with the profile fast.
func (b *bench) faults() {
	b.silent(3*time.Second, 2*time.Second)
	b.silent(time.Second, 500*time.Millisecond)
}

func (b *bench) silent(lease, grace time.Duration) {
	head(fmt.Sprintf("silent faults (lease %v, grace %v; from the fault)", lease, grace))
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
				p := b.play(kit.Options{Session: 2 * lease, Grace: grace})
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
