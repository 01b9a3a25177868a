// Package supervisor runs programs, each only while this node holds its lock.
//
// The promises, by the numbers that comments and tests use:
//
//   - P1 One child. A service's child runs on at most one node, and only while this node's lease is valid.
//   - P2 Dead means dead. The lock is given back only after the child's whole tree is proved dead. An unproved death keeps
//     the lock until the session ends by itself, and leaves the breadcrumb.
//   - P3 The lease ends before the session can. Whatever happens to us or to our network, the tree is dead before ZooKeeper
//     can have given the lock away by itself. If somebody else may have ended a session, its end does not prove the lease's: see
//     election.PreviousLease. A failsafe service's tree may live longer, as long as every node that could start it has
//     promised not to.
//   - P4 No child outlives its supervisor: the guardians make sure.
//   - P5 Fence before start. A child starts only after the node that the breadcrumb names is known to be dead or fenced, and
//     after the breadcrumb names us.
//   - P6 Progress. With a quorum and one healthy node, somebody is active.
//   - P7 Calm. The child does not notice an outage that is shorter than the lease.
//
// Not promised: a machine that is paused as a whole and resumed can run its child for the instant before the guardians'
// timers fire. The grace delay trusts the rates of clocks, never their values. Wiping ZooKeeper's data wipes the breadcrumbs:
// nodes that were connected before it wait until every lease must have ended, a node started after it cannot know.
package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"understudy/election"
	"understudy/fencing"
	"understudy/fencing/agent"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/control"
	"understudy/supervisor/failsafe"
	"understudy/supervisor/handoff"
	"understudy/supervisor/host"
	"understudy/supervisor/keyfile"
	"understudy/supervisor/replica"
	"understudy/supervisor/service"
	"understudy/supervisor/unit"
	"understudy/supervisor/wait"
)

// Config is everything that one supervisor runs.
type Config struct {
	Node      string
	Host      string
	File      string // the config file; empty: there is none
	Sum       string // of its content, and of all that it includes
	Version   string
	Servers   []string
	Root      string
	Cluster   string        // tells it from another one with this root on this machine; "": there is none
	Lease     time.Duration // how long programs may run after the last acknowledged heartbeat
	Auth      *election.Auth
	Agent     *Agent                                  // nil: no other node can ask
	Watchdog  *config.Watchdog                        // nil: none is used
	Notify    *config.Notify                          // nil: this node tells nobody
	Memory    service.Memory                          // nil: there is none
	Notes     func(service string) unit.Notes         // where is noted how to undo oneshots; nil: in files
	WithUndos func() []string                         // the services of which something is noted there; nil: those in files
	Copies    func(service, dir string) replica.Store // where is kept what a copy has followed; nil: in files
	// Lacks is why this machine could not start a service now; it may hang with a file system. nil: that is never looked at.
	Lacks         func(config.Service) error
	Links         service.Links  // nil: programs alone tell that an address has no link
	SessionRecord *SessionRecord // nil: nothing is known of a supervisor that was killed with its guardians
	Neighbours    *Neighbours    // nil: there are none
	Services      []service.Conf
	Warnings      []string      // dangerous settings, a line each, for the status
	Changes       <-chan Change // changes of the config while it runs; nil: none
	Unserved      <-chan string // why HTTP is not served, as that changes; empty: it is; nil: it need not be
	Logger        hclog.Logger
	JSONLog       bool                   // the log's lines are JSON, and so are the guardians' last words
	TLS           *keyfile.TLS           // nil: plain
	Dial          election.DialFunc      // nil: TCP, by Resolver
	Resolver      *election.Resolver     // nil: this process's
	Machine       host.Machine           // nil: this one
	Observer      Observer               // nil: none
	Pulse         <-chan chan<- struct{} // requests for a sign of life: answered while the supervisor's loops run
	Hurry         <-chan struct{}        // closed when a stop must be quick: children are killed, not asked
	Thread        chan<- func()          // runs functions on the main thread of the process; nil: no hand-over is possible
	Upgrade       Upgrade
	Broken        func(error) // is told of impossible events, besides the log; nil: only the log is
	// Stuck is told once that the goroutine that decides for a service stands still. It has to end this process at once, as a crash does.
	// nil: nobody looks.
	Stuck    func(service string, stood time.Duration)
	Handover []byte // the envelope of a previous image of this process; nil: there was none

	MostInTurn int // as in election.Config
}

// Upgrade lets a supervisor become another image of its process, usually another version; children do not notice.
type Upgrade struct {
	Asked  <-chan struct{}             // nil: it never does
	Become func(handover []byte) error // execs; returns only if that fails
	Hangs  func() bool                 // a thread is where no signal ends it: an exec would wait for it; nil: none ever is
}

// Change is the result of reading the config again.
type Change struct {
	Services []service.Conf
	Sum      string   // of the files
	Fault    string   // why the config is not taken up; then the services stay as they are
	Restart  bool     // a restart takes up what is not
	Warnings []string // dangerous settings of the config that was taken up
}

// Observer is told events as they happen, by several goroutines. Its methods must return at once, and must not call the
// supervisor.
type Observer interface {
	service.Observer
	// Lease tells each new end of the lease; a zero LeaseStatus is none.
	Lease(control.LeaseStatus)
	// Gone tells that a service is not in the config any more, and has ended.
	Gone(service string)
	// Faulty tells why a changed config is not taken up; "": it is.
	Faulty(why string)
	// Warned tells which settings are dangerous, a line each.
	Warned(warnings []string)
	// Nodes tells which nodes are known, and whether they are connected.
	Nodes(connected map[string]bool)
	// Watchdog tells, once, which device is used and how. armed reports at any time whether it resets this machine unless
	// it is fed; an observer may call no other function of the supervisor.
	Watchdog(device, mode string, armed func() bool)
}

// unobserved is the observer that does nothing.
type unobserved struct{}

func (unobserved) Lease(control.LeaseStatus)            {}
func (unobserved) State(control.LocalStatus)            {}
func (unobserved) Gone(string)                          {}
func (unobserved) Fenced(string, string, time.Duration) {}
func (unobserved) Restarted(string)                     {}
func (unobserved) Claimed(string)                       {}
func (unobserved) Announced(string)                     {}
func (unobserved) Faulty(string)                        {}
func (unobserved) Warned([]string)                      {}
func (unobserved) Nodes(map[string]bool)                {}
func (unobserved) Watchdog(string, string, func() bool) {}

// supervisor runs all services of a node, over one session with ZooKeeper at a time.
type supervisor struct {
	cfg     Config
	log     hclog.Logger
	self    election.Node
	trouble time.Duration // how long to wait after the next failure to open a session
	held    atomic.Bool   // promises are in the place of ZooKeeper's lease
	died    atomic.Value  // the session of the supervisor before this one, once all that it started is proved dead

	guarded        chan struct{} // closed when the guardians stand
	guard          host.Guard
	commands       *unit.Commands
	promises       *failsafe.Promises // this node's promises to others
	spread         *service.Spread
	left           *handoff.Envelope // the envelope of a previous image of this process; nil: none
	previousEpochs []uint64          // leases of previous sessions under which something may run

	roster      roster
	notes       notes
	credentials *credentials
	exposure    *exposure
	pulse       pulse
	unserved    string        // the newest of Config.Unserved, for the loop of a session
	wake        chan struct{} // capacity 1: the loop of a session has to look at the roster and the notes
}

func newSupervisor(cfg Config) *supervisor {
	s := &supervisor{
		cfg: cfg, log: cfg.Logger, guarded: make(chan struct{}), wake: make(chan struct{}, 1),
		promises: failsafe.NewPromises(), spread: service.NewSpread(),
		notes: notes{observer: cfg.Observer}, pulse: pulse{beat: make(chan struct{})},
	}
	s.roster = roster{create: s.service, observer: cfg.Observer, births: map[string]election.Birth{}}
	s.exposure = &exposure{
		look: make(chan struct{}, 1), names: s.roster.names, notes: &s.notes,
		changed: func() { wait.Poke(s.wake) }, log: s.log,
	}
	s.credentials = newCredentials(cfg.Auth, s.log, func() { wait.Poke(s.exposure.look) }, func() { wait.Poke(s.wake) })
	return s
}

// Run supervises until ctx ends. Then it stops all children, gives all locks back, and returns. With Once it returns
// when the command has ended; status is then the command's own.
func Run(ctx context.Context, cfg Config) (status *child.ExitStatus, err error) {
	if cfg.Machine == nil {
		cfg.Machine = host.This(cfg.Thread, cfg.Root, cfg.JSONLog, PendingEffects)
	}
	if cfg.Observer == nil {
		cfg.Observer = unobserved{}
	}
	self, err := cfg.Machine.Identity()
	if err != nil {
		return nil, fmt.Errorf("identify this machine: %w", err)
	}
	s := newSupervisor(cfg)
	s.commands = unit.NewCommands(func() host.Guard { return s.guard }, cfg.Machine.Now)
	s.notes.change(func(f *facts) { f.warned, f.sum = cfg.Warnings, cfg.Sum })
	s.self = election.Node{
		Node: cfg.Node, Host: cfg.Host, Pid: os.Getpid(), Version: cfg.Version, Config: cfg.File, Sum: cfg.Sum,
		Machine: self.Machine, Boot: self.Boot,
		Since: time.Now().UTC(),
	}
	if cfg.Handover != nil {
		if err := s.adopt(ctx); err != nil {
			return nil, fmt.Errorf("continue from the previous image of this process: %w", err)
		}
	}
	defer cfg.Neighbours.leave()
	if err := cfg.Neighbours.occupy(cfg.Services); err != nil {
		if s.left == nil { // P7: what was handed over runs on
			return nil, err
		}
		s.log.Error("two supervisors use the same files", "why", err)
	}
	for _, c := range cfg.Services {
		s.roster.add(c).Show()
	}
	if s.left != nil {
		s.roster.reinstate(s.left)
		s.log.Info("continuing after the upgrade: this process took over from its previous version",
			"from", cmp.Or(s.left.Build, "unknown"), "to", cfg.Version, "running", s.left.Running(),
			"session", election.SessionName(s.left.Session.Session))
	}
	if cfg.WithUndos == nil {
		cfg.WithUndos = func() []string { return unit.ServicesWithUndos(cfg.Node, ClusterOf(cfg)) }
	}
	s.addWithUndos(cfg.WithUndos())
	// The guardians start at the same time as the session. They end last.
	standing, fail := context.WithCancelCause(ctx)
	guarding, leave := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { fail(s.keepGuard(guarding)) })
	if cfg.Agent != nil {
		answers := s.answerer()
		wg.Go(func() { answers.answerAll(guarding) })
	}
	if cfg.Notify != nil {
		wg.Go(func() { s.notifier().Run(standing) })
	}
	taking, enough := context.WithCancel(guarding)
	defer enough()
	var taken sync.WaitGroup
	taken.Go(func() { s.takeChanges(taking) })
	defer wg.Wait()
	defer leave()
	err = s.sessions(standing)
	enough()
	taken.Wait() // the services are ours from here on
	for _, v := range s.roster.services {
		s.roster.closing.Go(v.Close) // all at once: each waits for a file system that may hang
	}
	s.roster.closing.Wait()
	if cause := context.Cause(standing); err == nil && ctx.Err() == nil && cause != nil {
		err = cause
	}
	for _, v := range s.roster.services {
		if err == nil {
			err = v.Unproved() // the unproved trees belong to an earlier session: this one was closed
		}
	}
	for _, v := range s.roster.services {
		if status := v.Finished(); status != nil {
			return status, err
		}
	}
	return nil, err
}

// addWithUndos adds the services that are not in the config, and for which a previous supervisor has left something to undo.
func (s *supervisor) addWithUndos(services []string) {
	for _, name := range services {
		if slices.Contains(s.roster.names(), name) {
			continue
		}
		if dead, _ := s.cfg.Neighbours.join(name, true); dead {
			s.roster.addRemoved(service.CarriedService{Name: name})
		}
	}
}

// keepGuard keeps two guardians running until ctx ends.
func (s *supervisor) keepGuard(ctx context.Context) error {
	if s.left != nil {
		return s.guard.Run(ctx)
	}
	guard, err := s.cfg.Machine.Guard(ctx, containment(s.cfg.Services), s.cfg.Node, s.log)
	if err != nil {
		return err
	}
	s.guard = guard
	s.showWatchdog()
	close(s.guarded)
	return guard.Run(ctx)
}

// containment is the mode that all services share: a particular kind if one asks for it, else strict if one asks for that.
func containment(services []service.Conf) string {
	mode := config.ContainAuto
	for _, v := range services {
		if v.Contain != "" && v.Contain != config.ContainAuto && (mode == config.ContainAuto || mode == config.ContainStrict) {
			mode = v.Contain
		}
	}
	return string(mode)
}

// showWatchdog tells the observer about the device, once the guardians that feed it run.
func (s *supervisor) showWatchdog() {
	if w := s.cfg.Watchdog; w != nil {
		s.cfg.Observer.Watchdog(w.Device, string(w.Mode), s.guard.WatchdogArmed)
	}
}

// shared makes the parts that all services of this node use.
func (s *supervisor) shared() *service.LocalNode {
	n := &service.LocalNode{
		Self: s.self, Root: s.cfg.Root, Cluster: ClusterOf(s.cfg), Machine: s.cfg.Machine, Guard: func() host.Guard { return s.guard },
		Commands: s.commands, Promises: s.promises, Spread: s.spread, Watchdog: s.cfg.Watchdog, Memory: s.cfg.Memory,
		Notes: s.cfg.Notes, Copies: s.cfg.Copies, Lacks: s.cfg.Lacks, Links: s.cfg.Links, Observer: s.cfg.Observer,
		Logger: s.log, Hurry: s.cfg.Hurry,
		Broken: s.cfg.Broken, Died: func(session string) bool { return session != "" && session == s.died.Load() },
		AgentAddress: s.cfg.Agent.address,
	}
	if a := s.cfg.Agent; a != nil {
		n.AskAgent = &agent.Method{Keys: a.Keys, Dial: a.Dial}
	}
	return n
}

// service makes a service from its config.
func (s *supervisor) service(c service.Conf) *service.Service { return service.New(s.shared(), c) }

// ClusterOf names the cluster, in characters that fit into a file name. The list of servers has no part in it: whoever adds one is still to
// find what the previous supervisor has left.
func ClusterOf(cfg Config) string { return ClusterName(cfg.Root, cfg.Cluster) }

// ClusterName is ClusterOf by zookeeper.root and zookeeper.name. All names of one root have the same beginning, up to a dash.
func ClusterName(root, name string) string {
	hash := func(text string) string {
		h := fnv.New64a()
		fmt.Fprint(h, text)
		return strconv.FormatUint(h.Sum64(), 36)
	}
	if name == "" {
		return hash(root)
	}
	return hash(root) + "-" + hash(name)
}

// PendingEffects names the effects of a target that was on this machine, in this boot now, which are not undone.
func PendingEffects(t fencing.Target, boot string) []string {
	term := unit.TermRef{Root: t.Root, Node: t.Node, Service: t.Service, Token: t.Token, Boot: t.Boot, Survive: t.Survive}
	return unit.PendingEffectsOn(term, boot)
}
