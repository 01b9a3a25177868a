package programs

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"understudy/supervisor/testbed/kit"
)

var (
	faultsFlag  = flag.Int("faults", 0, "how many befall a replicated program, one after the other")
	programFlag = flag.String("program", "redis", "which one: redis, redis-aof, postgresql or mariadb")
	seedFlag    = flag.Uint64("seed", rand.Uint64N(1e6), "of the faults, their order and whom they hit; by default another one each time")
)

// bound ends a long run: no fault begins after it.
const bound = 25 * time.Minute

// kind is what befalls the primary, a follower, or all.
type kind string

const (
	killed         kind = "primary's program killed"
	emptied        kind = "primary's data emptied, and its program killed"
	killed9        kind = "primary's supervisor killed -9"
	frozen         kind = "primary's supervisor frozen"
	unseen         kind = "primary's node cut off from ZooKeeper"
	alone          kind = "primary's node cut off from the others"
	switchedOver   kind = "switchover"
	followerKilled kind = "follower's program killed"
	followerEnded  kind = "follower's supervisor killed -9"
	followerFrozen kind = "follower's supervisor frozen"
	followerUnseen kind = "follower's node cut off from ZooKeeper"
	followerAlone  kind = "follower's node cut off from the others"
	promoted       kind = "follower promoted by hand"
	allOff         kind = "all off, and on again"
	upgraded       kind = "primary's supervisor asked to upgrade"
	followerAsked  kind = "follower's supervisor asked to upgrade"
)

// row is a line of the table.
type row struct {
	gaps                      []time.Duration // of the faults that all copies got over
	times, acked, lost, twice int
}

// long is a run of many faults.
type long struct {
	*testing.T
	*trio
	kinds []kind
	dice  *rand.Rand
	bag   []kind // faults to come
	rows  map[kind]*row
	began time.Time
	done  int
}

// TestNothingIsLostInALongRun has faults befall a replicated program. The seed gives which, in which order, and whom they hit. Of all
// that was acknowledged nothing may be lost, all answers have to be linearizable, and no two copies may be primaries at once; all else is
// a figure.
func TestNothingIsLostInALongRun(t *testing.T) {
	if *faultsFlag <= 0 {
		t.Skip("for -faults: make replicated")
	}
	l := &long{T: t, dice: rand.New(rand.NewPCG(*seedFlag, 0)), rows: map[kind]*row{}}
	l.kinds = []kind{killed, killed9, frozen, unseen, alone, switchedOver, followerKilled, followerEnded, followerFrozen, followerUnseen, followerAlone, promoted, allOff, upgraded, followerAsked}
	switch *programFlag {
	case "redis", "redis-aof":
		l.kinds = append(l.kinds, emptied)
		line := withRDB
		if *programFlag == "redis-aof" {
			line = withAOF
		}
		l.trio = redisTrioWith(t, line)
	case "postgresql":
		l.trio = postgresTrio(t)
	case "mariadb":
		l.trio = mariaTrio(t)
	default:
		t.Fatalf("there is no replicated example of %q: redis, redis-aof, postgresql or mariadb", *programFlag)
	}
	t.Logf("%d faults, seed %d", *faultsFlag, *seedFlag)
	p := l.begin(t)
	l.began = time.Now()
	registers := newRegisters(l.swap)
	registers.use(t, l.dial, l.addrs()...)
	defer func() {
		registers.check(t)
		l.report()
	}()
	for l.done < *faultsFlag && l.twice() == 0 && !t.Failed() {
		if took := time.Since(l.began); took > bound {
			fmt.Printf("it ends after %v, with %d of %d faults done\n", took.Round(time.Second), l.done, *faultsFlag)
			break
		}
		p = l.one(l.draw(), p)
	}
	registers.last(t, l.dial, p.Addr+l.port)
}

// twice is how often there were two primaries.
func (l *long) twice() int {
	times, _, _ := l.m.Seen()
	return times
}

// draw takes the next fault out of the bag, which holds each kind once.
func (l *long) draw() kind {
	if len(l.bag) == 0 {
		for _, i := range l.dice.Perm(len(l.kinds)) {
			l.bag = append(l.bag, l.kinds[i])
		}
	}
	k := l.bag[0]
	l.bag = l.bag[1:]
	return k
}

// one does one fault, and waits until a copy acknowledges writes, and then until all copies follow. It returns the primary's host.
func (l *long) one(k kind, p *kit.Host) *kit.Host {
	l.Helper()
	r := l.rows[k]
	if r == nil {
		r = &row{}
		l.rows[k] = r
	}
	acked := l.l.Count()
	defer func() {
		l.done++
		r.times, r.acked, r.lost, r.twice = r.times+1, r.acked+l.l.Count()-acked, r.lost+l.l.Lost, r.twice+l.twice()
	}()
	f := l.others(p)[l.dice.IntN(2)]
	l.Logf("%s, fault %d: %s; the primary is %s, the follower %s", time.Now().Format(time.TimeOnly), l.done+1, k, p.Name, f.Name)
	began := time.Now()
	previous, mend := l.inject(k, p, f)
	l.failed(l.T, string(k), previous)
	mend()
	p = l.primary(l.T)
	l.Logf("all copies follow after %v", time.Since(began).Round(time.Millisecond))
	r.gaps = append(r.gaps, max(l.gap, l.l.Served(l.T, p.Addr+l.port)))
	l.l.Check(l.T, p.Addr+l.port)
	return p
}

// inject does a fault to the primary, or to one of its followers. It returns the host that cannot serve until the fault is over, if
// there is one, and what ends the fault.
func (l *long) inject(k kind, p, f *kit.Host) (previous *kit.Host, mend func()) {
	l.Helper()
	others := func(h *kit.Host) (addrs []string) {
		for _, other := range l.others(h) {
			addrs = append(addrs, other.Addr)
		}
		return addrs
	}
	away := func() { // what it said of itself goes with its session
		kit.Until(l, soon, f.Name+" is no candidate any more", func() bool { return l.Gone("services", l.service, "members", f.Name) })
	}
	switch k {
	case killed: // its own copy may have the newest data, and be back in time
		l.kill(l.T, p)
	case emptied:
		l.empty(l.T, p)
	case killed9:
		l.sups[p.Name].Kill9()
		return p, func() { l.up(l.T, p) }
	case frozen:
		l.sups[p.Name].Signal(syscall.SIGSTOP)
		return p, func() { l.sups[p.Name].Signal(syscall.SIGCONT) }
	case unseen:
		p.CutFrom(l, l.Addrs()...)
		return p, func() { p.Heal(l) }
	case alone: // nobody has what it writes now
		p.CutFrom(l, others(p)...)
		l.l.Quiet(l.T, time.Duration(1+l.dice.IntN(8))*time.Second)
		p.Heal(l)
	case switchedOver:
		l.order(l.T, "switchover", l.service, "--to", f.Name)
		return p, func() {}
	case followerKilled:
		l.kill(l.T, f)
	case followerEnded:
		l.sups[f.Name].Kill9()
		l.l.More(l.T, 100)
		return nil, func() { l.up(l.T, f) }
	case followerFrozen:
		l.sups[f.Name].Signal(syscall.SIGSTOP)
		away()
		return nil, func() { l.sups[f.Name].Signal(syscall.SIGCONT) }
	case followerUnseen:
		f.CutFrom(l, l.Addrs()...)
		away()
		return nil, func() { f.Heal(l) }
	case followerAlone:
		f.CutFrom(l, others(f)...)
		l.l.More(l.T, 500)
		return nil, func() { f.Heal(l) }
	case promoted:
		l.byHand(l.T, f)
	case allOff:
		l.restart(l.T, l.shuffled(), l.shuffled())
	case upgraded:
		l.upgrade(l.T, p)
	case followerAsked:
		l.upgrade(l.T, f)
	}
	return nil, func() {}
}

// shuffled are all hosts, in any order.
func (l *long) shuffled() (all []*kit.Host) {
	for _, i := range l.dice.Perm(len(l.hosts)) {
		all = append(all, l.hosts[i])
	}
	return all
}

// report prints what was done, and every figure.
func (l *long) report() {
	fmt.Printf("\n%s: %d faults in %v, seed %d\n\n", l.service, l.done, time.Since(l.began).Round(time.Second), *seedFlag)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "fault\ttimes\tmedian gap\tlongest\twrites acknowledged\tlost\ttwo primaries")
	var all row
	line := func(name string, r *row) {
		fmt.Fprintf(out, "%s\t%d\t%v\t%v\t%d\t%d\t%d\n", name, r.times, kit.Median(r.gaps).Round(time.Millisecond),
			kit.Quantile(r.gaps, 1).Round(time.Millisecond), r.acked, r.lost, r.twice)
	}
	for _, k := range l.kinds {
		if r := l.rows[k]; r != nil {
			line(string(k), r)
			all = row{append(all.gaps, r.gaps...), all.times + r.times, all.acked + r.acked, all.lost + r.lost, all.twice + r.twice}
		}
	}
	line("all", &all)
	out.Flush()
}
