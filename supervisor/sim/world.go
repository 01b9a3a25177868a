package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy/fencing/agent"
)

// world is everything in one run: hosts, network, ZooKeeper, and who watches over the promises.
type world struct {
	plan  *Plan
	rng   *rand.Rand
	began time.Time
	net   *network
	zk    *zookeeper
	check *checker
	cover Coverage
	keys  *agent.Keys // of all agents
	trace *trace
	hosts []*host
	nodes []*node
	wait  sync.WaitGroup

	mu       sync.Mutex // guards hosts and all that is on them, and the checker
	quiet    bool       // no process ends by itself
	over     bool
	silent   atomic.Bool         // over, for those who do not hold mu
	unfenced bool                // no power switch answers
	drilled  bool                // a failback to a broken node was tried
	trials   map[string]*trouble // by service
	waylaid  map[string][]Fault  // by service: what is to happen when somebody is fencing
	faults   map[Kind]int        // that have happened
	ailing   map[ailment]*sickness
	settings map[string]*settings // by service
	passed   atomic.Int64         // grows while virtual time does
	newest   time.Time            // when the newest happened
	calm     time.Duration        // of long times between two
	undo     []func()             // ends of faults that a trap began
	random   map[string]*rand.Rand
	kept     []func()  // ends of the keeping of sessions
	outages  int       // ensembles that are out of sight
	upgraded time.Time // when an upgrade was ordered last
}

// trouble is how a service's program behaves while a fault of it lasts.
type trouble struct {
	life   time.Duration
	code   int
	absent bool
	side   bool          // only the second program
	node   string        // only there; "": everywhere
	slow   time.Duration // what each start takes, whatever comes of it
}

// current is the world that runs now, for whoever watches that it gets on.
var current atomic.Pointer[world]

func newWorld(p *Plan) *world {
	w := &world{plan: p, began: time.Now(), newest: time.Now(), trace: newTrace(), random: map[string]*rand.Rand{}, trials: map[string]*trouble{}, waylaid: map[string][]Fault{}, faults: map[Kind]int{}, ailing: map[ailment]*sickness{}}
	w.trace.every = p.Tell
	w.cover, w.keys = Coverage{}, agent.Shared([]byte("known to all nodes"))
	w.rng = w.stream("operator")
	w.settings = w.newSettings()
	current.Store(w)
	w.check = newChecker(w)
	w.net = newNetwork(w.stream("network"), w.serve)
	w.net.base = p.Latency
	w.zk = w.newZooKeeper()
	for n := range p.Hosts {
		h := &host{
			w: w, index: n, name: fmt.Sprintf("h%d", n+1), machine: fmt.Sprintf("machine%d", n+1), boots: 1, on: true,
			trees: map[string]*tree{}, beings: map[*guardian]struct{}{},
		}
		h.rng, h.lags = w.stream(h.name), w.stream(h.name+" guardians")
		h.rate = 1 + p.Drift*(2*h.rng.Float64()-1)
		if p.Clones {
			h.machine = "image"
		}
		w.hosts = append(w.hosts, h)
	}
	for n := range p.Nodes {
		node := &node{w: w, index: n, name: fmt.Sprintf("n%d", n+1), host: w.hosts[n%p.Hosts]}
		node.dog = &device{node: node, holders: map[any]bool{}}
		w.nodes = append(w.nodes, node)
	}
	return w
}

// stream is a source of random numbers of its own, so that what one part draws does not move another.
func (w *world) stream(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(w.plan.Seed, h.Sum64()))
}

// serverOf is the number of the server with that address.
func serverOf(address string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(address, "zk"), ":2181"))
	return n - 1
}

// after runs f later, with mu held.
func (w *world) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.over {
			f()
		}
	})
}

func (w *world) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// draw is a duration below limit.
func (w *world) draw(r *rand.Rand, limit time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return drawn(r, limit)
}

// noteFault counts a fault, and the calm before it. World.mu is held.
func (w *world) noteFault(k Kind) {
	w.faults[k]++
	if calm := time.Since(w.newest); calm >= longCalm {
		w.calm += calm
	}
	w.newest = time.Now()
}

// longCalm is a time without a new fault that counts as a long one.
const longCalm = 10 * time.Minute

func drawn(r *rand.Rand, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(r.Int64N(int64(limit)))
}

// thawJitter is how late the threads of a process wake.
func (w *world) thawJitter(r *rand.Rand) func() time.Duration {
	return func() time.Duration {
		if w.plan.Sharp {
			return 0
		}
		return w.draw(r, 3*time.Millisecond)
	}
}

// say adds to the trace.
func (w *world) say(format string, args ...any) {
	if !w.silent.Load() {
		w.trace.add(time.Since(w.began), format, args...)
	}
}

// startTakes is what a start takes now, besides.
func (w *world) startTakes(service string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bad := w.trials[service]; bad != nil {
		return bad.slow
	}
	return 0
}

// natureOf draws how a program that is started now is going to behave. False: there is no such program.
func (w *world) natureOf(t *tree, program string) (nature, bool) {
	if program != mainProgram && program != sideProgram {
		return w.helper(program, t), true
	}
	p, r := w.plan, t.host.rng
	n := nature{dies: drawn(r, p.Dying), yields: drawn(r, p.StopTimeout*3/2), deaf: r.IntN(3) == 0, offspring: r.IntN(3)}
	if r.IntN(2) == 0 {
		n.yields = drawn(r, 10*time.Millisecond)
	}
	n.strays, n.headless = r.IntN(8) == 0, r.IntN(4) == 0
	bad := w.trials[t.service]
	switch {
	case w.quiet || bad == nil || bad.side && program != sideProgram || bad.node != "" && bad.node != t.node:
	case bad.absent:
		return n, false
	default:
		n.life, n.code = bad.life/2+drawn(r, bad.life), bad.code
	}
	return n, true
}
