package child

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/guard"
)

// What a caller may branch on.
var (
	ErrLeaseEnded    = guard.ErrLeaseEnded
	ErrNoLease       = guard.ErrNoLease
	ErrGuardiansLost = errors.New("both guardians were lost at once")
	ErrStopped       = errors.New("the guard has stopped")
)

// GuardConfig is what a Guard needs to know. Container comes from Probe.
type GuardConfig struct {
	Exe       string // the binary that is re-executed; default /proc/self/exe
	Args0     string // how the processes call themselves in ps; default "understudy"
	Container Container
	Logger    hclog.Logger
	Name      string        // the node: part of cgroup names and titles
	Root      string        // of the cluster in ZooKeeper: tells its services' cgroups from those of others
	TwinGrace time.Duration // how long one guardian watches alone before it ends everything; default 1s
	// Thread runs what it is given on the main thread of the process, for which it has to be free until the guard has stopped.
	// Only then HandOver can be used, and again after it. nil: a thread of the guard's own.
	Thread chan<- func()
}

func (cfg GuardConfig) withDefaults() GuardConfig {
	if cfg.Exe == "" {
		cfg.Exe = "/proc/self/exe"
	}
	if cfg.Args0 == "" {
		cfg.Args0 = "understudy"
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.TwinGrace <= 0 {
		cfg.TwinGrace = time.Second
	}
	return cfg
}

// Guard keeps the promise that no tree outlives its lease or its supervisor. It is two guardian processes, and what this
// process knows of them.
type Guard struct {
	cfg     GuardConfig
	fallen  chan *seat // a guardian has gone
	errands chan func()
	stopped chan struct{}
	tasks   sync.WaitGroup // all that Run waits for
	reach   Reach

	mu      sync.Mutex // guards what follows; the messages sent while it is held are sent without waiting
	seats   [2]*seat
	seq     uint64
	nacks   map[uint64]error
	changed chan struct{} // closed at every acknowledgement and every change of the seats
	epochs  map[uint64]*epoch
	trees   uint64           // the last number given to a tree
	lent    *guard.Message   // what the guardians answer at in our place
	left    map[string]noted // of trees that breadcrumbs name, by their names

	kennel kennel

	beforeSpawn func() // tests freeze here: after the last look at the lease, before the fork
}

func newGuard(cfg GuardConfig) *Guard {
	return &Guard{
		cfg:     cfg.withDefaults(),
		fallen:  make(chan *seat, 16),
		errands: make(chan func()),
		stopped: make(chan struct{}),
		nacks:   make(map[uint64]error),
		changed: make(chan struct{}),
		epochs:  make(map[uint64]*epoch),
		left:    make(map[string]noted),
		seq:     1,
		kennel:  newKennel(),
	}
}

// StartGuard starts both guardians and returns when they have answered. Trees can be made once Run runs.
func StartGuard(ctx context.Context, cfg GuardConfig) (*Guard, error) {
	g := newGuard(cfg)
	// What this process was started with is its own: no guardian and no program inherits it.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if g.cfg.Container.Kind == KindCgroup {
		bounded, cancel := context.WithTimeout(ctx, sweepLimit)
		defer cancel()
		if _, err := sweep(bounded, g.cfg.Container.Base, g.cfg.Logger); err != nil { // what is left is for keepSweeping
			return nil, err
		}
	}
	for i := range g.seats {
		s, err := g.newSeat(ctx, i)
		if err != nil {
			for _, started := range g.seats[:i] {
				started.destroy()
			}
			return nil, err
		}
		s.live = true // there is nothing yet that it would have to be told
		g.seats[i] = s
	}
	g.introduce()
	return g, nil
}

const (
	heedEvery = 2 * time.Second
	parting   = 500 * time.Millisecond // for the guardians to leave
	ackLimit  = time.Second

	sweepLimit = time.Second
)

// Run watches the guardians, replaces one that is gone, and starts processes. When ctx ends it kills what is left, lets
// the guardians go, and returns.
func (g *Guard) Run(ctx context.Context) error {
	g.tasks.Go(g.spawn)
	g.tasks.Go(g.keepKennel)
	g.tasks.Go(g.keepSweeping)
	for _, s := range g.seats {
		g.attend(s)
	}
	heed := time.NewTicker(heedEvery)
	defer heed.Stop()
	for {
		select {
		case <-ctx.Done():
			return g.stop(context.WithoutCancel(ctx))
		case s := <-g.fallen:
			g.replace(ctx, s)
		case <-heed.C:
			g.demandHeed()
			heed.Reset(heedEvery) // also after a freeze, an answer has that long
		}
	}
}

// stop is the end of Run. Guardians that lose the supervisor kill what it left behind, so they go last.
func (g *Guard) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := g.killAll(ctx, ErrStopped)
	g.disarm(ctx, true)
	close(g.stopped)
	g.mu.Lock()
	seats := g.seats
	g.mu.Unlock()
	for _, s := range seats {
		if s != nil {
			_ = s.link.file.Close() // P4: to the guardian, this is the supervisor's death
		}
	}
	if err != nil {
		return fmt.Errorf("stop the guard: %w", err) // what could not be proved dead may hold a waiting goroutine for ever
	}
	gone := make(chan struct{})
	go func() { g.tasks.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(parting):
		// One still tries to close a former session, at servers that do not answer. It needs nobody for that.
	}
	return nil
}

// replace puts a new guardian in the place of one that is gone, knowing everything that the other one knows.
func (g *Guard) replace(ctx context.Context, gone *seat) {
	log := g.cfg.Logger
	g.mu.Lock()
	if g.seats[gone.index] != gone {
		g.mu.Unlock()
		return
	}
	g.seats[gone.index] = nil
	twin := g.seats[1-gone.index]
	g.mu.Unlock()
	gone.kill() // it may only have closed its socket
	if twin != nil && !twin.gone() {
		fresh, err := g.informedSeat(ctx, gone.index)
		if errors.Is(err, errBlind) { // what has ended meanwhile is no hindrance any more
			fresh, err = g.informedSeat(ctx, gone.index)
		}
		if err == nil && !g.awake(ctx, twin) {
			err = errors.New("the other one is gone too")
		}
		if err == nil {
			g.attend(fresh)
			g.introduce()
			log.Warn("guardian replaced", "index", gone.index+1, "gone", gone.pid, "new", fresh.pid, "because", gone.cause())
			return
		}
		if fresh != nil {
			g.unseat(fresh)
		}
		log.Error("guardian not replaced", "index", gone.index+1, "error", err)
	}
	g.bothLost(ctx)
}

// bothLost starts over: P4 cannot be kept by a supervisor alone, so its terms end here and now.
func (g *Guard) bothLost(ctx context.Context) {
	g.cfg.Logger.Error("guardians lost, ending all trees")
	g.strikeAll(ErrGuardiansLost)
	g.mu.Lock()
	old := g.seats
	g.seats = [2]*seat{}
	g.mu.Unlock()
	for _, s := range old {
		if s != nil {
			s.kill()
			g.cleanUp(s)
		}
	}
	for pause := 50 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 5*time.Second) {
		err := g.freshPair(ctx)
		if err == nil {
			g.cfg.Logger.Warn("a new pair of guardians watches")
			return
		}
		g.cfg.Logger.Error("no guardians could be started", "error", err)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (g *Guard) freshPair(ctx context.Context) error {
	var fresh [2]*seat
	for i := range fresh {
		var err error
		if fresh[i], err = g.informedSeat(ctx, i); err != nil {
			for _, started := range fresh {
				if started != nil {
					g.unseat(started)
				}
			}
			return err
		}
	}
	for _, s := range fresh {
		g.attend(s)
	}
	g.introduce()
	return nil
}

// introduce tells each guardian who the other one is.
func (g *Guard) introduce() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, s := range g.seats {
		if twin := g.seats[1-i]; s != nil && twin != nil {
			g.send(s, &guard.Message{Op: guard.OpTwin, Along: twin.pidfd})
		}
	}
	g.news()
}

// news wakes all who wait for a change. The caller holds mu.
func (g *Guard) news() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// attend reads what a guardian says, and waits for its end.
func (g *Guard) attend(s *seat) {
	g.tasks.Go(func() {
		g.listen(s)
		s.silent.Store(true)
		select {
		case g.fallen <- s:
		case <-g.stopped:
		}
		g.cleanUp(s)
	})
}

func (g *Guard) listen(s *seat) {
	buf := make([]byte, maxPacket)
	for {
		m, err := s.link.receive(buf)
		if err != nil {
			s.because(err)
			return
		}
		g.heard(s, &m)
	}
}

// heard takes in what a guardian says.
func (g *Guard) heard(s *seat, m *guard.Message) {
	g.mu.Lock()
	switch m.Op {
	case guard.OpNack:
		if m.Seq > 0 {
			g.nacks[m.Seq] = m.Err()
		}
		fallthrough
	case guard.OpAck:
		s.acked = max(s.acked, m.Seq)
		g.news()
	case guard.OpEnded:
		g.over(m.Epoch, ErrLeaseEnded)
	}
	g.mu.Unlock()
	switch m.Op {
	case guard.OpEnded:
		g.cfg.Logger.Warn("a guardian ended the lease", "guardian", s.index+1, "epoch", m.Epoch, "reason", m.Why)
	case guard.OpCloser:
		if m.OK {
			g.cfg.Logger.Info("a guardian closed the former session", "guardian", s.index+1, "epoch", m.Epoch)
		} else {
			g.cfg.Logger.Warn("a guardian could not close the former session", "guardian", s.index+1, "epoch", m.Epoch, "error", m.Why)
		}
	}
}

// cleanUp reaps a guardian of this pair that has ended, and lets go of what belongs to it.
func (g *Guard) cleanUp(s *seat) {
	s.once.Do(func() {
		s.reaping.Lock()
		defer s.reaping.Unlock()
		_, _ = waitFor(s.process)
		_ = s.link.file.Close()
		_ = s.pidfd.Close()
	})
}

func (g *Guard) unseat(s *seat) {
	g.mu.Lock()
	if g.seats[s.index] == s {
		g.seats[s.index] = nil
	}
	g.mu.Unlock()
	s.destroy()
}

// spawn has the spawner run until the guard has stopped.
func (g *Guard) spawn() {
	if g.cfg.Thread == nil {
		g.spawner()
		return
	}
	over := make(chan struct{})
	select {
	case g.cfg.Thread <- func() { defer close(over); g.spawner() }:
		<-over
	case <-g.stopped:
	}
}

// spawner is the thread that all processes are started from: the signal that a child gets when its parent dies is bound
// to the thread that forked it, not to the process.
func (g *Guard) spawner() {
	unlock := lockThread()
	defer unlock()
	for {
		select {
		case errand := <-g.errands:
			errand()
		case <-g.stopped:
			return
		}
	}
}
