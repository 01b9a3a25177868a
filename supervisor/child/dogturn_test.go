package child

import (
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bowl is a guardian with a dog, and a tree under a lease; time is the test's.
type bowl struct {
	t    *testing.T
	g    *guardian
	w    *watch
	q    *quarry
	body *mortal
	food *os.File
}

func newBowl(t *testing.T, timeout time.Duration) *bowl {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	fd, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	b := &bowl{t: t, body: &mortal{}, food: r}
	b.q = &quarry{bodies: []prey{{body: b.body}}, armed: true, after: 200 * time.Millisecond}
	b.w = &watch{epoch: 1, trees: map[uint64]*quarry{1: b.q}}
	b.g = &guardian{sock: -1, orphaned: true, watches: map[uint64]*watch{1: b.w}, dog: &dog{fd: fd, food: []byte("1"), timeout: timeout}}
	t.Cleanup(func() { b.g.dropDog() })
	return b
}

// run lets the guardian take its turns as its own timer would have it, and returns when it fed.
func (b *bowl) run(from, to time.Duration) (fed []time.Duration) {
	b.t.Helper()
	for now := from; now < to; {
		before := b.g.dog.fed
		next := b.g.turn(now)
		if b.g.dog.fed != before {
			fed = append(fed, now)
		}
		if next == 0 || next > to {
			break
		}
		if next <= now {
			b.t.Fatalf("at %v it wants to be woken at %v", now, next)
		}
		now = next
	}
	return fed
}

// P3: a lease that is not extended is fed for at most until a timeout before its session can end, and as late as that.
func TestLastFeedComesATimeoutBeforeTheSessionCanEnd(t *testing.T) {
	const timeout, start = 2 * time.Second, time.Hour
	b := newBowl(t, timeout)
	b.w.deadline = start + 3100*time.Millisecond
	limit := b.w.deadline + b.q.after
	fed := b.run(start, limit+time.Minute)
	last := fed[len(fed)-1]
	if last+timeout > limit || last+timeout <= b.w.deadline {
		t.Errorf("the lease ends at %v, the session at %v: the reset comes at %v", b.w.deadline-start, limit-start, last+timeout-start)
	}
	for i := range fed[1:] {
		if fed[i+1]-fed[i] > timeout/3 {
			t.Errorf("fed only after %v", fed[i+1]-fed[i])
		}
	}
	// An extension in time is answered at once, however long nothing was fed.
	b.w.ended, b.w.deadline = false, limit+3*time.Second
	if fed := b.run(limit-10*time.Millisecond, limit); len(fed) != 1 {
		t.Errorf("fed at %v", fed)
	}
}

// P2, P3: after the lease's end it is fed again only for trees that are proved dead.
func TestTreeThatDoesNotDieIsNotFedFor(t *testing.T) {
	const timeout, start = 2 * time.Second, time.Hour
	b := newBowl(t, timeout)
	b.w.deadline = start + time.Second
	b.g.end(b.w, "test")
	b.w.endedAt = start
	if fed := b.run(start+time.Second, start+2*hopeless); len(fed) > 0 {
		t.Fatalf("fed at %v", fed)
	}
	if len(b.g.watches) == 0 {
		t.Fatal("given up: the guardian would leave, and call the reset off")
	}
	b.body.dies = true
	if fed := b.run(start+2*hopeless, start+2*hopeless+1); len(fed) != 1 || len(b.g.watches) > 0 {
		t.Fatalf("proved dead, and not fed, or not forgotten")
	}
}

func TestTreeThatIsNotArmedIsFedFor(t *testing.T) {
	b := newBowl(t, time.Second)
	b.w.deadline, b.q.armed = time.Hour, false
	if fed := b.run(2*time.Hour, 2*time.Hour+3*time.Second); len(fed) < 12 {
		t.Fatalf("fed at %v", fed)
	}
}

// A guardian that leaves says so to the device, unless something that it is armed for may be alive.
func TestFarewellIsWrittenOnlyWhenNothingIsAlive(t *testing.T) {
	for dead, want := range map[bool]string{true: "V", false: ""} {
		b := newBowl(t, time.Second)
		b.q.dead = dead
		b.g.dropDog()
		buf := make([]byte, 8)
		n, _ := b.food.Read(buf)
		if got := string(buf[:n]); got != want {
			t.Errorf("dead %v: %q", dead, got)
		}
	}
}

// What was over when a guardian first heard of it is all known to it before it ends: nothing is taken for dead unseen.
func TestGuardianLearnsOfATreeThatOutlivedItsLease(t *testing.T) {
	g := &guardian{sock: -1, orphaned: true, watches: map[uint64]*watch{}}
	do := func(m message) {
		t.Helper()
		if err := g.obey(&m); err != nil {
			t.Fatalf("%s: %v", m.Op, err)
		}
		g.turn(Now())
	}
	self, err := statOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	do(message{Op: opBegin, Epoch: 1, Deadline: 1, OK: true})
	do(message{Op: opTree, Epoch: 1, Tree: 1})
	do(message{Op: opArm, Epoch: 1, Tree: 1, Grace: 1})
	do(message{Op: opStub, Epoch: 1, Tree: 1, Body: &bodyRef{Kind: KindPidNS, Pid: self.pid, Start: self.start}})
	w := g.watches[1]
	w.trees[1].bodies[0].close()
	w.trees[1].bodies[0].body = &mortal{}
	do(message{Op: opEnd, Epoch: 1})
	if limit, bound := g.leash(); !bound || limit > Now() || !w.ended {
		t.Errorf("bound: %v, ended: %v", bound, w.ended)
	}
}

// A guardian that takes another's place is told of the device first, and that a tree is armed before it can be killed.
func TestNewGuardianIsToldOfTheWatchdog(t *testing.T) {
	g := &Guard{epochs: map[uint64]*epoch{}}
	g.kennel.dog = &dogDevice{timeout: time.Second}
	e := &epoch{number: 1, deadline: time.Hour, trees: map[uint64]*Tree{}, cause: ErrLeaseEnded}
	e.trees[1] = &Tree{guard: g, epoch: e, number: 1, armed: true, after: time.Second}
	g.epochs[1] = e
	all := g.replay()
	var ops []op
	for _, m := range all {
		ops = append(ops, m.Op)
	}
	if want := []op{opDog, opBegin, opTree, opArm, opEnd}; !slices.Equal(ops, want) {
		t.Fatalf("%v, want %v", ops, want)
	}
	if all[0].Grace != time.Second || all[1].Deadline != time.Hour || !all[1].OK || all[3].Grace != time.Second {
		t.Errorf("%+v", all)
	}
}

func TestWhatIsNoWatchdogIsNotArmed(t *testing.T) {
	for _, w := range []Watchdog{
		{Path: "/dev/null", Timeout: time.Second},
		{Path: "/dev/no-such-watchdog", Timeout: time.Second},
		{Path: "/etc/passwd", Timeout: time.Second},
		{Path: "/dev/null", Timeout: time.Second / 2},
	} {
		if d, err := openDog(w); err == nil {
			t.Errorf("%+v: %v", w, d.part())
		} else {
			t.Log(err)
		}
	}
}

// driver answers as a watchdog's driver would.
type driver struct {
	opts               uint32
	err, stays, broken error
	least, most        int // of its timeout
	set                int
	runs               bool
}

func (d *driver) options() (uint32, error) { return d.opts, d.err }
func (d *driver) setTimeout(s int) error   { d.set = max(min(s, d.most), d.least); return nil }
func (d *driver) timeout() (int, error)    { return d.set, nil }
func (d *driver) stop() error              { d.runs = d.runs && d.stays != nil; return d.stays }
func (d *driver) start() error             { d.runs = d.broken == nil; return d.broken }

func TestWatchdogIsTakenOnlyWithATimeoutThatIsShortEnough(t *testing.T) {
	const fine = unix.WDIOF_SETTIMEOUT | unix.WDIOF_KEEPALIVEPING | unix.WDIOF_MAGICCLOSE
	for name, c := range map[string]struct {
		driver    driver
		want      time.Duration // 0: refused
		permanent bool
	}{
		"fine":               {driver{opts: fine, most: 60}, 3 * time.Second, false},
		"shorter":            {driver{opts: fine, most: 2}, 2 * time.Second, false},
		"too long":           {driver{opts: fine, least: 4, most: 60}, 0, false},
		"nothing":            {driver{opts: fine}, 0, false},
		"nowayout":           {driver{opts: fine, most: 60, stays: unix.EBUSY}, 3 * time.Second, true},
		"does not say":       {driver{opts: fine, most: 60, stays: unix.ENOTTY}, 3 * time.Second, true},
		"does not start":     {driver{opts: fine, most: 60, broken: unix.EIO}, 0, false},
		"timeout as it is":   {driver{opts: unix.WDIOF_KEEPALIVEPING, most: 60}, 0, false},
		"alarm only":         {driver{opts: fine | unix.WDIOF_ALARMONLY, most: 60}, 0, false},
		"no watchdog device": {driver{err: unix.ENOTTY, most: 60}, 0, false},
	} {
		c.driver.runs = true
		got, permanent, err := prepareDog(&c.driver, 3*time.Second)
		if got != c.want || permanent != c.permanent || (err == nil) != (c.want > 0) {
			t.Errorf("%s: %v, permanent: %v, %v", name, got, permanent, err)
		}
		if err == nil && !c.driver.runs {
			t.Errorf("%s: it does not run", name)
		}
	}
}
