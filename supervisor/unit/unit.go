package unit

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/host"
	"understudy/supervisor/wait"
)

// Config configures a unit.
type Config struct {
	Service  string
	Node     string
	Root     string // of the cluster in ZooKeeper
	Boot     string // of this machine
	Cluster  string // tells one cluster's files on this machine from another's
	Logger   hclog.Logger
	Hurry    <-chan struct{}  // closed when a stop must be quick: programs are killed, not asked
	Commands *Commands        // for commands outside any session
	Notes    Notes            // nil: a file
	Unlogged func(why string) // is told why output is lost, and "" once it is not; nil: nobody asks
}

// Unit is the part of a service's programs that outlives a run: their log files and pending undos.
type Unit struct {
	cfg     Config
	log     hclog.Logger
	reach   wait.Reach
	deaf    wait.Reach // runs whose programs have sent to their sockets what does not close
	logs    logs
	undos   pendingUndos
	undoing sync.WaitGroup // StartUndo
	enough  chan struct{}  // ends it; nil: it is not under way
	hung    host.Tree      // of an undo that was given up; nil: it is proved dead
	hooks   sync.WaitGroup // RunHook
}

// New makes the unit of a service.
func New(cfg Config) *Unit {
	u := &Unit{cfg: cfg, log: cfg.Logger, logs: logs{unlogged: cfg.Unlogged}}
	u.undos = pendingUndos{
		node: cfg.Node, service: cfg.Service, root: cfg.Root, boot: cfg.Boot, store: undosFile(cfg),
		log: cfg.Logger, busy: make(chan struct{}, 1),
	}
	return u
}

// Facts are the environment of every command of a service.
func (u *Unit) Facts(token int64) []string {
	return []string{
		"UNDERSTUDY_SERVICE=" + u.cfg.Service, "UNDERSTUDY_NODE=" + u.cfg.Node, "UNDERSTUDY_TOKEN=" + strconv.FormatInt(token, 10),
	}
}

// RunHook runs a hook, and returns at once. Nothing depends on its result; only Close waits for it.
func (u *Unit) RunHook(ctx context.Context, what string, h config.Hook, facts []string) {
	u.hooks.Go(func() { u.hook(ctx, what, h, facts) })
}

func (u *Unit) hook(ctx context.Context, what string, h config.Hook, facts []string) {
	if len(h.Command) == 0 {
		return
	}
	began := time.Now()
	u.log.Info("running a hook", "service", u.cfg.Service, "hook", what, "timeout", h.Timeout)
	if err := u.Command(ctx, what, child.Spec{Argv: h.Command, Env: facts}, h.Timeout); err != nil {
		u.log.Error("hook failed", "service", u.cfg.Service, "hook", what, "error", err)
		return
	}
	u.log.Info("hook done", "service", u.cfg.Service, "hook", what, "took", time.Since(began).Round(time.Millisecond))
}

// Close waits for hooks, and for an undo that is under way, and closes the log files. No run is left.
func (u *Unit) Close() {
	u.StopUndo()
	u.hooks.Wait()
	if err := u.logs.close(); err != nil {
		u.log.Warn("a log file cannot be closed", "service", u.cfg.Service, "error", err)
	}
}
