package child

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/guard"
	"understudy/supervisor/wait"
)

// Errors that a caller may branch on.
var (
	ErrLeaseEnded    = guard.ErrLeaseEnded
	ErrNoLease       = guard.ErrNoLease
	ErrGuardiansLost = guard.ErrGuardiansLost
	ErrTreeEnded     = guard.ErrTreeEnded
	ErrStopped       = errors.New("the guard has stopped")
)

// GuardConfig configures a Guard. Container comes from containment.Choose.
type GuardConfig struct {
	Container box.Container
	Logger    hclog.Logger
	Name      string // the node: part of cgroup names and titles
	Root      string // of the cluster in ZooKeeper: its services' cgroups differ from those of other clusters by it
	JSONLog   bool   // the log's lines are JSON
	// Thread runs functions on the main thread of the process, which has to be free for that until the guard has stopped.
	// HandOver needs it. nil: a thread of the guard's own.
	Thread chan<- func()
}

// Guard keeps the promise that no tree outlives its lease or its supervisor.
type Guard struct {
	cfg       GuardConfig
	guardians *guardians
	spawner   spawner
	watchdog  watchdog
	leftovers *box.Leftovers
	reach     wait.Reach
	making    atomic.Int32 // trees that are not known to the guardians yet
	others    atomic.Int32 // open files when there was no tree

	beforeSpawn func() // tests freeze here: after the last look at the lease, before the fork
}

func newGuard(cfg GuardConfig) *Guard {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if err := inside.NoteOpenFiles(); err != nil {
		cfg.Logger.Debug("cannot raise the limit of open files again", "error", err)
	}
	box.Spare(box.Spared)
	both := newGuardians(cfg)
	g := &Guard{
		cfg: cfg, guardians: both, spawner: spawner{thread: cfg.Thread, jobs: make(chan func()), stopped: both.stopped},
		leftovers: box.NewLeftovers(cfg.Container, cfg.Root, cfg.Logger, both.stopped),
	}
	g.watchdog = newWatchdog(both, g.leftovers)
	return g
}

// StartGuard starts both guardians and returns when they have answered. Trees can be made once Run runs.
func StartGuard(ctx context.Context, cfg GuardConfig) (*Guard, error) {
	g := newGuard(cfg)
	// No guardian and no program inherits the descriptors that this process was started with.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if g.cfg.Container.Kind == box.KindCgroup {
		bounded, cancel := context.WithTimeout(ctx, box.SweepLimit)
		defer cancel()
		if _, err := box.Sweep(bounded, g.cfg.Container.Base, g.cfg.Logger); err != nil { // KeepSweeping kills the rest
			return nil, err
		}
	}
	for i := range g.guardians.at {
		bounded, cancel := context.WithTimeout(ctx, firstLimit)
		s, err := g.guardians.startGuardian(bounded, i)
		cancel()
		if err != nil {
			for _, started := range g.guardians.at[:i] {
				started.destroy()
			}
			return nil, err
		}
		g.guardians.at[i] = s
	}
	defer g.guardians.lock()()
	for i, number := range g.guardians.pair.Present(wire.Now(), [2]uint64{}) { // there is nothing yet to tell them
		g.guardians.at[i].number = number
	}
	g.guardians.pair.Introduce()
	return g, nil
}

const guardiansEnd = 500 * time.Millisecond // is waited for so long

// Run watches the guardians, replaces one that is gone, and starts processes. When ctx ends it kills the remaining trees,
// lets the guardians go, and returns.
func (g *Guard) Run(ctx context.Context) error {
	tasks := &g.guardians.tasks
	tasks.Go(func() { g.guardians.words.write(g.guardians.stopped) })
	tasks.Go(g.spawner.run)
	tasks.Go(g.watchdog.disarmWhenIdle)
	tasks.Go(g.leftovers.KeepSweeping)
	return g.guardians.serve(ctx, func() error { return g.stop(context.WithoutCancel(ctx)) })
}

// stop is the end of Run. Guardians that lose the supervisor kill its leftover processes, so they go last.
func (g *Guard) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := g.guardians.killAll(ctx)
	g.watchdog.disarm(ctx, true)
	g.guardians.hangUp()
	if err != nil {
		return fmt.Errorf("stop the guard: %w", err) // what could not be proved dead may hold a waiting goroutine for ever
	}
	gone := make(chan struct{})
	go func() { g.guardians.tasks.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(guardiansEnd):
		// A guardian may still try to close a previous session, at servers that do not answer. It needs no supervisor for that.
	}
	return nil
}

// Pid is the process id of a guardian, 0 if there is none at the moment.
func (g *Guard) Pid() int {
	defer g.guardians.lockToRead()()
	for _, s := range g.guardians.at {
		if s != nil {
			return s.pid
		}
	}
	return 0
}

// Begin opens a new epoch. If this process dies, a guardian hands ticket to the session closer.
func (g *Guard) Begin(number uint64, ticket []byte) error {
	defer g.guardians.lock()()
	if len(ticket) > wire.MaxPacket/2 {
		return fmt.Errorf("begin epoch %d: ticket: %w", number, wire.ErrPacketTooLarge)
	}
	if err := g.guardians.pair.State.Begin(number, slices.Clone(ticket)); err != nil {
		return fmt.Errorf("begin epoch %d: %w", number, err)
	}
	return nil
}

// Extend moves the epoch's deadline, a point on the clock of Now; an earlier one than it had changes nothing. It does not
// wait for anything. ErrLeaseEnded: the epoch is over and its trees are being killed.
func (g *Guard) Extend(number uint64, deadline time.Duration) error {
	defer g.guardians.lock()()
	if err := g.guardians.pair.State.Extend(wire.Now(), number, deadline); err != nil {
		return fmt.Errorf("extend epoch %d: %w", number, err)
	}
	return nil
}

// Finish forgets the epoch once all its trees have ended; then guardians do not close its session.
func (g *Guard) Finish(number uint64) error {
	defer g.guardians.lock()()
	if err := g.guardians.pair.State.Finish(number); err != nil {
		return fmt.Errorf("finish epoch %d: %w", number, err)
	}
	return nil
}

// Over is closed when the epoch is over, for any cause; Cause then says why: ErrLeaseEnded, ErrGuardiansLost or
// ErrStopped. Its trees are being killed, but the caller still has to end them.
func (g *Guard) Over(number uint64) <-chan struct{} {
	defer g.guardians.lockToRead()()
	return g.guardians.pair.State.Over(number)
}

// Cause says why the epoch is over; nil while it is not.
func (g *Guard) Cause(number uint64) error {
	defer g.guardians.lockToRead()()
	return g.guardians.pair.State.Cause(number)
}

// trees are those of all epochs that have not ended with proof. The caller holds mu.
func (g *guardians) trees() (all []*Tree) {
	for _, e := range g.pair.State.Leases() {
		for _, t := range e.Trees() {
			all = append(all, t.Spec.Of.(*Tree))
		}
	}
	return all
}

// Leftover ends the processes of a service that previous supervisors have left on this machine, and those of the tree with that
// identity, if it is theirs. It returns a process that it could not prove dead before ctx ended; nil: none is left.
func (g *Guard) Leftover(ctx context.Context, service string, id box.TreeID) *box.Leftover {
	return g.leftovers.End(ctx, service, id)
}
