//go:build simulation

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"understudy/election"
	"understudy/fencing"
)

// Plan is one run: the world's shape, and a schedule of faults. All of it follows from the seed.
type Plan struct {
	Seed        uint64
	Nodes       int
	Hosts       int // fewer than nodes: two supervisors share one
	Services    int
	Servers     int
	Timeout     time.Duration // of sessions
	Tick        time.Duration
	SyncLimit   int           // ticks after which a server gives up its leader
	Latency     time.Duration // of the network, at most
	Drift       float64       // of clocks, at most: a part of their rate
	Dying       time.Duration // how long a killed process takes to die, at most
	Grace       time.Duration
	StopTimeout time.Duration
	Rejoin      time.Duration
	Clones      bool // all hosts have the same machine id
	Order       election.Order
	Fencing     fencing.OnFailure
	Stonith     bool // hosts can be switched off by fencing
	Calm        bool // only what P7 says nobody notices
	Sharp       bool // the threads of a process that thaws wake all at once
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
	for n := range p.Servers {
		addresses = append(addresses, fmt.Sprintf("zk%d:2181", n+1))
	}
	return addresses
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// NewPlan makes the plan of a seed, with about that much virtual time; 300 session timeouts when zero.
func NewPlan(seed uint64, length time.Duration) *Plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &Plan{
		Seed: seed, Nodes: pick(r, 2, 3, 3, 3, 4), Services: pick(r, 1, 2), Servers: pick(r, 1, 3, 3), SyncLimit: pick(r, 2, 5),
		Timeout: pick(r, 2*time.Second, 6*time.Second, 6*time.Second, 12*time.Second, 30*time.Second, 60*time.Second),
		Latency: pick(r, 0, 0, time.Millisecond, 20*time.Millisecond), Drift: pick(r, 0, 0.001),
		Dying: pick(r, 0, 5*time.Millisecond, 10*time.Millisecond), Order: pick(r, election.Race, election.Queue),
		Clones: r.IntN(4) == 0, Fencing: pick(r, fencing.Refuse, fencing.Grace), Stonith: r.IntN(4) == 0,
		Calm: r.IntN(10) == 0, Sharp: r.IntN(2) == 0,
	}
	p.Hosts = p.Nodes
	if r.IntN(4) == 0 && p.Nodes > 2 {
		p.Hosts, p.Stonith = p.Hosts-1, false // who shares a host does not switch it off
	}
	p.Tick = p.Timeout / time.Duration(pick(r, 2, 3, 6, 20))
	if p.Calm {
		p.Tick = p.Timeout / 20
	}
	p.Grace = pick(r, 0, p.Timeout/4, p.Timeout, 2*p.Timeout)
	p.StopTimeout = pick(r, time.Second, p.Timeout/4, p.Timeout)
	p.Rejoin = pick(r, p.Timeout, 3*p.Timeout)
	if length == 0 {
		length = 300 * p.Timeout
	}
	for at := time.Duration(0); at < length; {
		e := p.episode(r)
		p.Episodes = append(p.Episodes, e)
		at += e.Length + e.Rest
	}
	return p
}

func (p *Plan) episode(r *rand.Rand) Episode {
	e := Episode{Length: p.Timeout * time.Duration(2+r.IntN(12)) / 2, Rest: p.Timeout * time.Duration(r.IntN(20)) / 2}
	kinds := p.kinds()
	for n := range 1 + r.IntN(6) {
		f := p.fault(r, pick(r, kinds...), e.Length)
		if p.Calm { // one at a time: two blips in a row may be longer than the lease
			f.At = time.Duration(n) * p.Timeout
			e.Length = f.At + p.Timeout
		}
		e.Faults = append(e.Faults, f)
	}
	slices.SortStableFunc(e.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	return e
}

func (p *Plan) fault(r *rand.Rand, k Kind, length time.Duration) Fault {
	f := Fault{Kind: k, At: drawn(r, length), Node: r.IntN(p.Nodes), Active: r.IntN(2) == 0, Server: r.IntN(p.Servers+1) - 1, Way: r.IntN(5), N: r.IntN(1 << 16)}
	switch r.IntN(3) {
	case 0:
		f.For = drawn(r, p.Timeout/5)
	case 1:
		f.For = drawn(r, p.Timeout)
	case 2:
		f.For = drawn(r, 4*p.Timeout)
	}
	if k == StickProcesses && f.N%2 == 0 {
		f.For = drawn(r, 4*p.Timeout)
	}
	if p.Calm {
		f.For = drawn(r, p.Timeout/5)
		if k == BreakReply { // one after the other they add up
			f.Server = f.N % p.Servers
		}
	}
	return f
}

// String tells the plan in plain words.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d nodes on %d hosts, %d services, %d servers, session timeout %v, tick %v (limit %d), latency <= %v, clock drift <= %g, "+
		"order %s, grace %v, stop timeout %v, clones %v, stonith %v, calm %v\n", p.Seed, p.Nodes, p.Hosts, p.Services, p.Servers, p.Timeout,
		p.Tick, p.SyncLimit, p.Latency, p.Drift, p.Order, p.Grace, p.StopTimeout, p.Clones, p.Stonith, p.Calm)
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
