package kit

import (
	"slices"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit/tick"
)

// Soon is enough for what takes milliseconds on a machine that is not busy, on one that is.
const Soon = time.Minute

// Play is one service on a stage, with its accounts, and with what Understudy says of it in ZooKeeper.
type Play struct {
	*Stage
	*Accounts
	*Cluster
	Options     Options       // of the supervisors that are started
	FreshTokens bool          // ZooKeeper lost its data: tokens need not grow
	Started     []*Supervisor // all of them, in order

	stood func() time.Duration
	wipes int  // of the servers, before
	alone bool // a program was left without supervisor and guardians
}

// NewPlay is a service of its own, below a root of its own.
func NewPlay(tb testing.TB, s *Stage, name string, o Options, words ...string) *Play {
	tb.Helper()
	p := &Play{
		Stage: s, Accounts: NewAccounts(tb, s.Lab), Cluster: Look(tb, s.Servers, "/e2e-"+name), Options: o, stood: Stood(tb), wipes: s.ZK.Wipes(),
	}
	p.Options.ZK, p.Options.Root, p.Options.Service, p.Options.Child = s.Servers, "/e2e-"+name, name, p.Child(words...)
	return p
}

// Start starts a supervisor of the service on a host.
func (p *Play) Start(tb testing.TB, h *Host) *Supervisor {
	tb.Helper()
	s := h.Supervise(tb, p.Options)
	p.Started = append(p.Started, s)
	return s
}

// Active starts a supervisor and waits for its child.
func (p *Play) Active(tb testing.TB, h *Host) (*Supervisor, Run) {
	tb.Helper()
	s := p.Start(tb, h)
	return s, p.On(tb, Soon, h.Name, 0)
}

// Standby starts a supervisor and waits until it stands by.
func (p *Play) Standby(tb testing.TB, h *Host) *Supervisor {
	tb.Helper()
	s := p.Start(tb, h)
	p.Stands(tb, h)
	return s
}

// Stands waits until a host's supervisor stands by.
func (p *Play) Stands(tb testing.TB, h *Host) {
	tb.Helper()
	p.WaitStandby(tb, Soon, p.Options.Service, h.Name)
}

// Pair starts the active one on one host and a standby on the other.
func (p *Play) Pair(tb testing.TB, one, other *Host) (a, b *Supervisor, run Run) {
	tb.Helper()
	a, run = p.Active(tb, one)
	return a, p.Standby(tb, other), run
}

// Relay has the active one of a pair brought down again and again, and tells what each time took: the gaps in which
// nobody ran, and the times from the fault to the next child.
func (p *Play) Relay(tb testing.TB, times int, one, other *Host, fault func(active *Supervisor)) (gaps, outages []time.Duration) {
	tb.Helper()
	r := p.NewRelay(tb, one, other)
	for range times {
		r.Turn(tb, fault)
	}
	return r.End(tb), r.Outages
}

// Relay is a pair of which the active one is brought down again and again.
type Relay struct {
	*Play
	Outages []time.Duration // from the fault to the next child

	active, standby *Supervisor
	run             Run
}

// NewRelay starts the pair.
func (p *Play) NewRelay(tb testing.TB, one, other *Host) *Relay {
	tb.Helper()
	r := &Relay{Play: p}
	r.active, r.standby, r.run = p.Pair(tb, one, other)
	return r
}

// Turn brings the active one down, waits for the other one's child, and starts another standby.
func (r *Relay) Turn(tb testing.TB, fault func(active *Supervisor)) {
	tb.Helper()
	active, at := r.active, tick.Now()
	fault(active)
	next := r.On(tb, Soon, r.standby.Host.Name, r.run.First)
	r.Outages = append(r.Outages, time.Duration(next.First-at))
	Until(tb, Soon, "the former active has ended", func() bool { return !active.Running() })
	r.active, r.standby, r.run = r.standby, r.Standby(tb, active.Host), next
}

// End tells the gaps in which nobody ran.
func (r *Relay) End(tb testing.TB) (gaps []time.Duration) {
	tb.Helper()
	runs := r.Runs()
	for i := range runs[1:] {
		gaps = append(gaps, Gap(runs[i], runs[i+1]))
	}
	if len(runs) != len(r.Outages)+1 {
		tb.Errorf("%d runs instead of %d", len(runs), len(r.Outages)+1)
	}
	return gaps
}

// Alone waits until a node's child is the only one that runs, and demands that it stays so for a while. Where the machine has stood still
// for most of a lease, that node may have stopped its child, and start it again: then the while begins anew.
func (p *Play) Alone(tb testing.TB, while time.Duration, node string) {
	tb.Helper()
	var running []Run
	alone := func() bool {
		running = p.Running()
		return len(running) == 1 && running[0].Node == node
	}
	elsewhere := func(r Run) bool { return r.Node != node }
	for {
		Until(tb, Soon, node+"'s child alone runs", alone)
		began := time.Now()
		if !Reached(while, func() bool { return !alone() }) {
			return
		}
		took := time.Since(began).Round(time.Millisecond)
		if still := p.stood(); still == 0 || still < p.Options.Session/4 || slices.ContainsFunc(running, elsewhere) {
			tb.Fatalf("no longer so after %v of %v: %s's child alone runs, but %+v; the machine stood still for %v", took, while, node, running, still)
		}
	}
}

// Untouched fails the test when the run is not the only one there ever was.
func (p *Play) Untouched(tb testing.TB, run Run) {
	tb.Helper()
	running := p.Running()
	if all := p.Runs(); len(all) != 1 || len(running) != 1 || running[0].Pid != run.Pid {
		tb.Fatalf("the child was touched: runs %+v", all)
	}
}

// Unattended kills a supervisor with both guardians at once. In a cgroup the child survives that.
func (p *Play) Unattended(tb testing.TB, s *Supervisor) (at int64) {
	tb.Helper()
	p.alone = true
	all := append(s.TwoGuardians(tb), s.Pid)
	at = tick.Now()
	KillAtOnce(all...)
	Until(tb, Soon, "the supervisor is dead", func() bool { return !s.Running() })
	return at
}

// Show tells what happened: the runs, and what every supervisor wrote.
func (p *Play) Show(tb testing.TB) {
	tb.Helper()
	runs := p.Runs()
	for i, r := range runs {
		tb.Logf("story: run %d: %s, token %d, %v long, began %v after the first, %v", i, r.Node, r.Token,
			time.Duration(r.Last-r.First), time.Duration(r.First-runs[0].First), r.Procs)
	}
	for _, s := range p.Started {
		tb.Logf("story: log of %s:\n%s", s.Host.Name, s.Log())
	}
}
