package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor/config"
	"understudy/supervisor/guard"
)

// Plan is one run: the world's shape, and a schedule of faults. All of it follows from the seed.
type Plan struct {
	Seed        uint64
	Nodes       int
	Hosts       int // fewer than nodes: two supervisors share one
	Services    int
	InTurn      int // how many requests a supervisor has in turn at once; 0: so many that none waits
	Servers     int
	Observers   int           // beside them
	Timeout     time.Duration // of sessions: two leases
	Tick        time.Duration
	SyncLimit   int           // ticks after which a server gives up its leader
	Latency     time.Duration // of the network, at most
	Drift       float64       // of clocks, at most: a part of their rate
	Dying       time.Duration // how long a killed process takes to die, at most
	Grace       time.Duration
	StopTimeout time.Duration
	Rejoin      time.Duration
	Backoff     time.Duration // before the first new start of a program that failed; 0: too short to matter
	Moves       int           // after so many the service stays put; 0: never
	Drills      bool          // operators' orders are followed with a watch when all is well
	Clones      bool          // all hosts have the same machine id
	Order       election.Mode
	Fencing     fencing.OnFailure
	Stonith     bool  // hosts can be switched off by fencing
	Agents      bool  // nodes can ask each other
	Calm        bool  // only what P7 says nobody notices
	Priority    []int // of nodes, for the first service; for the second in reverse
	Failback    bool
	Ineligible  int           // a node that never stands, or -1
	Programs    int           // of a service
	Helpers     bool          // health checks, prechecks and hooks
	Failsafe    []bool        // by service: it may outlast ZooKeeper
	Watchdog    int           // dogOff, ...
	Strangers   bool          // clients without credentials reach the servers
	Regrants    bool          // servers grant now this timeout, now that
	Least       time.Duration // the shortest that is granted then
	Most        time.Duration // and the longest
	Sharp       bool          // the threads of a process that thaws wake all at once
	Undo        time.Duration // services begin with a oneshot, which takes so long at most to be undone; 0: they do not
	NeedsProof  bool          // and no delay is a proof that it is
	Survives    bool          // and a boot of its host does not undo it
	Replicated  bool          // services run everywhere, and one copy is promoted
	Warm        *warm         // so they do, without data of their own; nil: they do not
	Seen        config.Quorum // so many followers have to see that they do not reach it; "": they do not look
	Named       bool          // supervisors find servers by their names
	NewWord     guard.Op      // that guardians from before an upgrade do not know; "": there is none
	Unequal     *unequal      // nil: the configs of nodes do not differ
	Lag         time.Duration // of what guardians learn, at most
	Devices     bool          // what services do beside themselves needs one, which may go away
	Episodes    []Episode
	Tell        func(line string) // is told each event, unless nil
}

// Episode is a time of faults, after which everything is healed; then somebody has to run soon.
type Episode struct {
	Faults []Fault
	Length time.Duration
	Rest   time.Duration // of quiet after that
}

// Fault is one disturbance. At counts from the beginning of the episode.
type Fault struct {
	Kind   Kind
	At     time.Duration
	For    time.Duration
	Node   int
	Active bool // not Node, but whoever runs a child then
	Server int  // -1: all
	Way    int
	N      int
}

func (p *Plan) services() (names []string) {
	for n := range p.Services {
		names = append(names, fmt.Sprintf("s%d", n+1))
	}
	return names
}

func (p *Plan) servers() (addresses []string) {
	for n := range p.all() {
		addresses = append(addresses, fmt.Sprintf("zk%d:2181", n+1))
	}
	return addresses
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// What operators use. Long ones are drawn more often than short ones: an hour of them is sooner simulated.
const (
	minTimeout = 2 * time.Second
	maxTimeout = 40 * time.Second
)

// planLength is how many session timeouts a plan takes at least.
const planLength = 300

// NewPlan makes the plan of a seed.
func NewPlan(seed uint64) *Plan {
	r := rand.New(rand.NewPCG(seed, 1))
	timeout := minTimeout + max(drawn(r, maxTimeout-minTimeout), drawn(r, maxTimeout-minTimeout), drawn(r, maxTimeout-minTimeout))
	p := &Plan{
		Seed: seed, Nodes: pick(r, 2, 2, 2, 3, 3, 4), Services: pick(r, 1, 1, 2), Servers: pick(r, 1, 3), SyncLimit: pick(r, 2, 5),
		Timeout: timeout.Round(100 * time.Millisecond),
		Latency: pick(r, 0, 0, 0, time.Millisecond, 20*time.Millisecond), Drift: pick(r, 0, 0.001),
		Dying: pick(r, 0, 5*time.Millisecond, 10*time.Millisecond), Order: pick(r, election.Race, election.Queue),
		Clones: r.IntN(4) == 0, Fencing: pick(r, fencing.Refuse, fencing.Grace), Stonith: r.IntN(4) == 0,
		Calm: r.IntN(10) == 0, Sharp: r.IntN(2) == 0,
	}
	if p.manyNodes() {
		p.Nodes, p.Servers = many, 3
	}
	p.Hosts = p.Nodes
	if r.IntN(4) == 0 && p.Nodes > 2 {
		p.Hosts, p.Stonith = p.Hosts-1, false // who shares a host does not switch it off
	}
	// Below two ticks are sessions that servers grant only when they are configured to. The lease covers a little of that.
	p.Tick = time.Duration(float64(p.Timeout) / pick(r, 1.25, 1.5, 2, 2, 3, 4, 6, 10, 20))
	if p.Calm {
		p.Tick = p.Timeout / 20
	}
	p.Grace = pick(r, 0, p.Timeout/4, p.Timeout, 2*p.Timeout)
	p.StopTimeout = pick(r, time.Second, p.Timeout/4, p.Timeout, 3*p.Timeout)
	p.Rejoin = pick(r, p.Timeout, 3*p.Timeout)
	p.crowd()
	p.prefer(r)
	p.failsafe()
	for at := time.Duration(0); at < planLength*p.Timeout; {
		e := p.episode(r)
		p.Episodes = append(p.Episodes, e)
		at += e.Length + e.Rest
	}
	p.upgrades()
	p.keepers()
	p.watchdogs()
	p.strangers()
	p.grants()
	p.effects()
	p.hangs()
	p.forgets()
	p.rewinds()
	p.standstills()
	p.drills()
	p.replicate()
	p.hides()
	p.unequals()
	p.commands()
	p.badNotes()
	p.otherTools()
	p.warms()
	p.names()
	p.moves()
	p.members()
	p.versions()
	p.obeys()
	p.lags()
	p.lies()
	p.devices()
	return p
}

// stopping is how long a service's programs may take to end when they are asked to.
func (p *Plan) stopping() time.Duration { return time.Duration(p.Programs) * p.StopTimeout }

// prefer draws what the services are like, besides.
func (p *Plan) prefer(r *rand.Rand) {
	p.Priority = make([]int, p.Nodes)
	if r.IntN(2) == 0 {
		for n := range p.Priority {
			p.Priority[n] = r.IntN(3)
		}
		p.Failback = r.IntN(3) > 0 && !p.Calm
	}
	p.Ineligible = -1
	if p.Nodes > 2 && r.IntN(4) == 0 {
		p.Ineligible = r.IntN(p.Nodes)
	}
	p.Programs, p.Helpers = pick(r, 1, 1, 2), r.IntN(4) == 0
	p.Agents = r.IntN(2) == 0
}

// pause is a time without a new fault: from a millisecond to tens of minutes, each order of magnitude as often as the next.
func (p *Plan) pause(r *rand.Rand) time.Duration {
	longest := min(100*p.Timeout, 40*time.Minute)
	return time.Duration(float64(time.Millisecond) * math.Pow(float64(longest)/float64(time.Millisecond), r.Float64()))
}

// episode is faults close together, overlapping; or, each third time, faults one after the other with any pause between.
func (p *Plan) episode(r *rand.Rand) Episode {
	e := Episode{Length: p.Timeout * time.Duration(2+r.IntN(12)) / 2, Rest: p.pause(r)}
	kinds := p.kinds()
	spread := r.IntN(3) == 0
	at := time.Duration(0)
	for n := range 1 + r.IntN(6) {
		f := p.fault(r, pick(r, kinds...))
		switch {
		case p.Calm: // one at a time: two blips in a row may be longer than the lease
			f.At = at
			at += p.Timeout + p.pause(r)/10
			if f.Kind == LoseEnsemble { // all have to be there again before the next
				at += f.For + 4*p.Timeout
			}
			e.Length = at
		case spread:
			at += p.pause(r)
			f.At = at
			e.Length = at + p.Timeout
		case n > 0:
			f.At = drawn(r, e.Length)
		}
		if (f.Kind == IsolateServer || f.Kind == SplitNetwork || f.Kind == StickProcesses) && !p.Calm { // others end with the episode
			e.Length = max(e.Length, f.At+f.For)
		}
		if f.Kind == LoseEnsemble {
			e.Length = max(e.Length, f.At+f.For+p.Timeout/4)
		}
		if f.Kind == IsolateUnheard { // it waits for its moment
			e.Length = max(e.Length, f.At+f.For+p.Timeout)
		}
		e.Faults = append(e.Faults, f)
	}
	sortFaults(e.Faults)
	return e
}

func sortFaults(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int { return int(a.At - b.At) })
}

func (p *Plan) fault(r *rand.Rand, k Kind) Fault {
	f := Fault{Kind: k, Node: r.IntN(p.Nodes), Active: r.IntN(2) == 0, Server: r.IntN(p.Servers+1) - 1, Way: r.IntN(5), N: r.IntN(1 << 16)}
	switch r.IntN(3) {
	case 0:
		f.For = drawn(r, p.Timeout/5)
	case 1:
		f.For = drawn(r, p.Timeout)
	case 2:
		f.For = drawn(r, 4*p.Timeout)
	}
	switch {
	case k == StickProcesses: // for longer than a session, or an attempt to prove a death
		f.For = drawn(r, 4*p.Timeout) + drawn(r, 20*time.Second)
		if f.with() == StopSupervisor { // longer than it waits for a proof
			f.For = 32*time.Second + drawn(r, 20*time.Second)
		}
		if f.with() == ChangeConfig { // longer than the session that could not prove the death
			f.For, f.Active = 2*p.Timeout+drawn(r, 2*p.Timeout), true
		}
	case k == ChangeConfig:
		if f.Way = r.IntN(edits); p.Calm { // what no child notices, or no other one
			f.Way = pick(r, editCommand, editTimeout, editOrder, editFault)
		}
	case k == BadProgram || k == PauseService || k == GiveOrder || k == SickHelper:
		f.For = drawn(r, 4*p.Timeout)
	case (k == IsolateServer || k == SplitNetwork) && f.N%2 == 0: // until sessions end
		f.For = p.Timeout + drawn(r, 2*p.Timeout)
	case k == TrapFreeze && f.N%4 < 2: // until another node may have taken over
		f.For = p.Timeout + drawn(r, p.Timeout)
	case k == TrapCut: // until the lease has ended
		f.For = p.Timeout*7/10 + drawn(r, p.Timeout)
	case k == IsolateUnheard: // until the session has ended
		f.For, f.Active = p.Timeout+p.Tick+drawn(r, p.Timeout), true
	case k == LoseEnsemble: // until sessions end, or for as long as it takes to notice
		f.For, f.Active = p.Timeout/2+drawn(r, 3*p.Timeout), false
	case k == LateInscription:
		f.For = p.Timeout/2 + drawn(r, p.Timeout/2)
	case k == DeleteInStopping:
		f.For = drawn(r, p.Timeout/20)
	case k == DeleteInFencing || k == StopInFencing:
		f.For = drawn(r, p.Timeout)
	}
	if p.Calm {
		f.For = drawn(r, p.Timeout/5)
		if k == PauseService {
			f.For = drawn(r, p.Timeout)
		}
		if k == LoseEnsemble { // and nothing besides
			f.For, f.Way, f.N = drawn(r, 5*p.Timeout), allServers, justGone
		}
		if k == BreakReply { // one after the other they add up
			f.Server = f.N % p.Servers
			if f.N/512%4 == 0 { // a server that refuses without a reason is no calm
				f.N += 512
			}
		}
	}
	return f
}

// String tells the plan in plain words.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d nodes on %d hosts, %d services, %d servers, session timeout %v, tick %v (limit %d), latency <= %v, clock drift <= %g, "+
		"order %s, grace %v, stop timeout %v, clones %v, stonith %v, agents %v, failsafe %v, watchdog %d, strangers %v, calm %v, priorities %v (failback %v), never stands: %d, %d programs, helpers %v%s\n", p.Seed, p.Nodes, p.Hosts, p.Services, p.Servers, p.Timeout,
		p.Tick, p.SyncLimit, p.Latency, p.Drift, p.Order, p.Grace, p.StopTimeout, p.Clones, p.Stonith, p.Agents, p.Failsafe, p.Watchdog, p.Strangers, p.Calm, p.Priority, p.Failback, p.Ineligible+1,
		p.Programs, p.Helpers, p.grantWords()+p.unequalWords()+p.undoWords()+p.crowdWords()+p.warmWords()+map[bool]string{true: fmt.Sprintf(", guardians learn late by <= %v", p.Lag)}[p.Lag > 0]+map[bool]string{true: ", devices go away"}[p.Devices]+map[bool]string{true: ", replicated"}[p.Replicated]+map[bool]string{true: ", servers by name"}[p.Named]+map[bool]string{true: fmt.Sprintf(", %d observers", p.Observers)}[p.Observers > 0]+map[bool]string{true: ", seen by " + string(p.Seen)}[p.Seen != ""])
	for n, e := range p.Episodes {
		if len(e.Faults) == 0 {
			continue
		}
		fmt.Fprintf(&b, "episode %d, %v long, then %v of rest\n", n+1, e.Length, e.Rest)
		for _, f := range e.Faults {
			fmt.Fprintf(&b, "  +%-12v %s\n", f.At.Round(time.Millisecond), f)
		}
	}
	return b.String()
}
