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
	ErrGuardiansLost = guard.ErrGuardiansLost
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
	jobs    chan func()
	stopped chan struct{}
	bell    chan struct{}  // capacity 1: something is due sooner
	tasks   sync.WaitGroup // all that Run waits for
	words   words
	reach   Reach

	mu        sync.Mutex // guards what follows; to be given back by unlock where pair was changed
	pair      *guard.Pair
	guardians [2]*guardianProcess
	gone      [2]*guardianProcess // that were there before
	due       time.Duration
	later     []func()         // deaths that are ordered at the end of a change
	left      map[string]noted // of trees that breadcrumbs name, by their names

	watchdog watchdog

	beforeSpawn func() // tests freeze here: after the last look at the lease, before the fork
}

func newGuard(cfg GuardConfig) *Guard {
	g := &Guard{
		cfg:      cfg.withDefaults(),
		jobs:     make(chan func()),
		stopped:  make(chan struct{}),
		bell:     make(chan struct{}, 1),
		words:    newWords(),
		left:     make(map[string]noted),
		watchdog: newWatchdog(),
	}
	g.pair = guard.NewPair(pairHands{g})
	return g
}

// unlock ends a change of the pair, and orders the deaths that it has led to.
func (g *Guard) unlock() {
	if next := g.pair.Next(); next > 0 && (g.due == 0 || next < g.due) {
		g.due = next
		select {
		case g.bell <- struct{}{}:
		default:
		}
	}
	later := g.later
	g.later = nil
	g.mu.Unlock()
	for _, do := range later {
		do()
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
	for i := range g.guardians {
		s, err := g.startGuardian(answerBy(ctx), i)
		if err != nil {
			for _, started := range g.guardians[:i] {
				started.destroy()
			}
			return nil, err
		}
		g.guardians[i] = s
	}
	g.mu.Lock()
	defer g.unlock()
	for i, number := range g.pair.Present(Now(), [2]uint64{}) { // there is nothing yet that they would have to be told
		g.guardians[i].number = number
	}
	g.pair.Introduce()
	return g, nil
}

const (
	parting    = 500 * time.Millisecond // for the guardians to leave
	sweepLimit = time.Second
)

// Run watches the guardians, replaces one that is gone, and starts processes. When ctx ends it kills what is left, lets
// the guardians go, and returns.
func (g *Guard) Run(ctx context.Context) error {
	g.tasks.Go(func() { g.words.write(g.stopped) })
	g.tasks.Go(g.spawn)
	g.tasks.Go(g.disarmWhenIdle)
	g.tasks.Go(g.keepSweeping)
	for i, s := range g.guardians {
		g.attend(i, s)
	}
	stop, over := ctx.Done(), make(chan error, 1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stop: // beside this loop: its questions have to have an end, too
			stop = nil
			go func() { over <- g.stop(context.WithoutCancel(ctx)) }()
			continue
		case err := <-over:
			return err
		case <-g.bell:
		case <-timer.C:
		}
		g.mu.Lock()
		if g.due = g.pair.Due(Now()); g.due > 0 {
			timer.Reset(max(g.due-Now(), 0))
		}
		g.unlock()
	}
}

// stop is the end of Run. Guardians that lose the supervisor kill what it left behind, so they go last.
func (g *Guard) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	g.mu.Lock()
	g.pair.Stop()
	g.unlock()
	err := g.killAll(ctx, ErrStopped)
	g.disarm(ctx, true)
	close(g.stopped)
	g.mu.Lock()
	all := g.guardians
	g.mu.Unlock()
	for _, s := range all {
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

// attend reads what a guardian says, and waits for its end.
func (g *Guard) attend(at int, s *guardianProcess) {
	if s == nil {
		return
	}
	g.tasks.Go(func() {
		g.listen(at, s)
		g.mu.Lock()
		here := g.guardians[at] == s
		if here {
			g.gone[at] = s
		}
		g.pair.Gone(Now(), at, s.number)
		if here {
			g.guardians[at] = nil
		}
		g.unlock()
		g.cleanUp(s)
	})
}

func (g *Guard) listen(at int, s *guardianProcess) {
	buf := make([]byte, maxPacket)
	for {
		m, err := s.link.receive(buf)
		if err != nil {
			s.because(err)
			return
		}
		g.heard(at, s, &m)
	}
}

// heard takes in what a guardian says.
func (g *Guard) heard(at int, s *guardianProcess, m *guard.Message) {
	g.mu.Lock()
	g.pair.Heard(Now(), at, s.number, m)
	g.unlock()
	log := g.cfg.Logger.With("guardian", at+1, "epoch", m.Epoch)
	switch {
	case m.Op == guard.OpEnded:
		g.words.say(log.Warn, "a guardian ended the lease", "reason", m.Why)
	case m.Op == guard.OpCloser && m.OK:
		g.words.say(log.Info, "a guardian closed the former session")
	case m.Op == guard.OpCloser:
		g.words.say(log.Warn, "a guardian could not close the former session", "error", m.Why)
	}
}

// cleanUp reaps a guardian of this pair that has ended, and lets go of what belongs to it.
func (g *Guard) cleanUp(s *guardianProcess) {
	s.once.Do(func() {
		s.reaping.Lock()
		defer s.reaping.Unlock()
		_, _ = waitFor(s.process)
		_ = s.link.file.Close()
		_ = s.pidfd.Close()
	})
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
		case job := <-g.jobs:
			job()
		case <-g.stopped:
			return
		}
	}
}
