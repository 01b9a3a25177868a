package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/fencing"
	"understudy/supervisor"
	"understudy/supervisor/child/box"
	machine "understudy/supervisor/host"
	"understudy/supervisor/service"
)

// host is a machine: a clock, processes, and what holds them. World.mu guards it.
type host struct {
	w       *world
	index   int
	name    string
	machine string // its machine id, which clones share
	boots   int
	rate    float64 // its clock's, against true time
	on      bool
	trees   map[string]*tree
	pids    int
	rng     *rand.Rand
	lags    *rand.Rand // of guardians' deaths, and of what they can open at first
	stuck   time.Time  // until then, what is killed does not die
	holds   string     // all of this service is held then, and nothing else; "": some of everything
	beings  map[*guardian]struct{}
	notes   map[fileKey]note // of pending undos
	disk    *badDisk         // of notes; nil: it works
	unnamed *namesAway       // nil: the name server answers
	asking  *rand.Rand       // of look-ups
	known   map[fileKey]service.Known
	locks   map[fileKey]*gate  // of pending undos
	asides  map[*gate]struct{} // processes that undo in guardians' place
}

func (h *host) boot() string { return fmt.Sprintf("%s.boot%d", h.name, h.boots) }

// now is the host's clock. It counts from far before the beginning, so that no deadline is ever zero.
func (h *host) now() time.Duration {
	return time.Duration(float64(time.Since(h.w.began))*h.rate) + time.Hour
}

// until is how long it really takes until the host's clock shows a point.
func (h *host) until(at time.Duration) time.Duration {
	return time.Duration(float64(at-h.now())/h.rate) + 1
}

func (h *host) pid() int {
	h.pids++
	return h.pids
}

// guardians is the guardians of all supervisors, in the order of their birth.
func (h *host) guardians() []*guardian {
	return slices.SortedFunc(maps.Keys(h.beings), func(a, b *guardian) int { return a.birth - b.birth })
}

// node is a supervisor's place, over all its incarnations.
type node struct {
	w        *world
	index    int
	name     string
	host     *host
	inc      *incarnation
	births   int
	thaws    []time.Time // of its supervisors
	hung     []time.Time // when goroutines of theirs did that decide
	covers   int         // sessions that expired while promises covered what runs
	all      []*incarnation
	down     time.Time // it is not started again before
	traps    []*trap
	armed    atomic.Int32 // how many
	hangs    atomic.Pointer[Fault]
	ear      *ear // the newest
	watchdog *device
	liar     *liar      // nil: its own agent answers
	bare     bool       // its device is away
	lists    *rand.Rand // of servers
}

// incarnation is one supervisor process. It implements host.Machine.
type incarnation struct {
	*gate
	node    *node
	number  int
	boot    int
	servers []string
	cluster string // as the supervisor names it for its files
	stop    context.CancelFunc
	guard   *keeper         // World.mu guards this and what follows
	asked   bool            // to stop
	hung    bool            // a goroutine that decides for a service hangs
	awake   time.Time       // since when
	stood   map[string]bool // services that it has been a candidate for
	changes chan supervisor.Change
	ear     *ear // nil: it does not listen

	upgrades chan struct{} // asks for the next image
	fate     Fault         // what is to become of that
}

// Identity implements host.Machine.
func (i *incarnation) Identity() (box.Host, error) {
	i.node.w.mu.Lock()
	defer i.node.w.mu.Unlock()
	return box.Host{Machine: i.node.host.machine, Boot: i.node.host.boot(), PidNS: 1}, nil
}

// Now implements host.Machine.
func (i *incarnation) Now() time.Duration {
	i.pass() // the caller must hold no lock: who waits for that one is not idle, and virtual time would stand still
	return i.node.host.now()
}

// Guard implements host.Machine.
func (i *incarnation) Guard(ctx context.Context, _, _ string, _ hclog.Logger) (machine.Guard, error) {
	if !i.pass() {
		return nil, errCrashed
	}
	return newKeeper(ctx, i)
}

// KillTree implements host.Machine.
func (i *incarnation) KillTree(ctx context.Context, id json.RawMessage) error {
	return i.node.host.killTree(ctx, i.gate, id)
}

func (i *incarnation) Outlasted(id json.RawMessage, seen fencing.ProcessID) error {
	return i.node.host.outlasted(id, seen)
}

// outlasted looks for a process that was seen alive of a tree.
func (h *host) outlasted(id json.RawMessage, seen fencing.ProcessID) error {
	var tid treeID
	if err := json.Unmarshal(id, &tid); err != nil {
		return fmt.Errorf("read a tree's identity: %w", err)
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if tid.Boot != h.boot() {
		return box.ErrElsewhere
	}
	if t := h.trees[tid.Name]; t != nil {
		for _, p := range t.all() {
			if p.pid == seen.Pid {
				return fmt.Errorf("process %d is alive", seen.Pid)
			}
		}
	}
	return nil
}

// killTree ends a tree by its identity, for a process behind a gate.
func (h *host) killTree(ctx context.Context, by *gate, id json.RawMessage) error {
	if !by.pass() {
		return errCrashed
	}
	var tid treeID
	if err := json.Unmarshal(id, &tid); err != nil {
		return fmt.Errorf("read a tree's identity: %w", err)
	}
	h.w.mu.Lock()
	t := h.trees[tid.Name]
	here := tid.Boot == h.boot()
	h.w.mu.Unlock()
	switch {
	case !here:
		return box.ErrElsewhere
	case t == nil:
		return nil
	}
	err := t.kill(ctx, by)
	if !by.pass() {
		return errCrashed
	}
	return err
}

// treeID is what a breadcrumb says of a tree.
type treeID struct{ Name, Boot string }
