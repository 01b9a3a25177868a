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

	"understudy/supervisor/service"
)

// world is everything in one run: hosts, network, ZooKeeper, and who watches over the promises.
type world struct {
	plan  *Plan
	began time.Time
	net   *network
	zk    *zookeeper
	check *checker
	trace *trace
	hosts []*host
	nodes []*node
	wait  sync.WaitGroup

	mu       sync.Mutex // guards hosts and all that is on them, and the checker
	course   course
	operator operator
	programs programs
	copies   copiesView
	drills   drill
	nemesis  nemesis
}

// current is the world that runs now, for whoever watches that it gets on.
var current atomic.Pointer[world]

func newWorld(p *Plan) *world {
	w := &world{plan: p, began: time.Now(), trace: newTrace()}
	w.trace.every = p.Tell
	w.operator = operator{world: w, rng: w.stream("operator"), settings: w.newSettings()}
	w.programs = programs{world: w, trials: map[string]*trouble{}, ailing: map[ailment]*sickness{}}
	w.drills = drill{world: w}
	w.copies = newCopiesView(w)
	w.course.world = w
	w.nemesis = newNemesis(w)
	current.Store(w)
	w.check = newChecker(w)
	w.net = newNetwork(w.stream("network"), w.serve)
	w.net.base = p.Latency
	w.zk = w.newZooKeeper()
	for n := range p.Hosts {
		h := &host{
			w: w, index: n, name: fmt.Sprintf("h%d", n+1), machine: fmt.Sprintf("machine%d", n+1), boots: 1, on: true,
			trees: map[string]*tree{}, beings: map[*guardian]struct{}{}, notes: map[fileKey]note{}, known: map[fileKey]service.Known{}, locks: map[fileKey]*gate{}, asides: map[*gate]struct{}{},
		}
		h.rng, h.lags = w.stream(h.name), w.stream(h.name+" guardians")
		h.asking = w.stream(h.name + " names")
		h.rate = 1 + p.Drift*(2*h.rng.Float64()-1)
		if p.Clones {
			h.machine = "image"
		}
		w.hosts = append(w.hosts, h)
	}
	for n := range p.Nodes {
		node := &node{w: w, index: n, name: fmt.Sprintf("n%d", n+1), host: w.hosts[n%p.Hosts]}
		node.lists = w.stream(node.name + " servers")
		node.watchdog = &device{node: node, holders: map[any]bool{}}
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
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(address, "zk"), addressPrefix), ":")
	n, _ := strconv.Atoi(name)
	return n - 1
}

// after runs f later, with mu held.
func (w *world) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.course.over {
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
	w.trace.add(time.Since(w.began), format, args...)
}
