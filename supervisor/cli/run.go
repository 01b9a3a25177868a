package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/oklog/run"
	"github.com/spf13/cobra"

	"understudy/fencing/agent"
	"understudy/supervisor"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/control/web"
	"understudy/supervisor/handoff"
	"understudy/supervisor/keyfile"
)

// runFlags are those of `run`. Those of a single command make the same Config that a file would.
type runFlags struct {
	cluster                      clusterFlags
	service, node                string
	session, grace, stopTimeout  time.Duration
	stopSignal, restart, order   string
	contain, logLevel, logFormat string
	http                         string
	agentListen, agentSecret     string
	once                         bool

	keys     *agent.Keys   // of this node's agent; nil: it has none
	warnings config.Faults // dangerous settings of the file

	takesOver bool // programs run, whose leases end if this takes long
}

// How long it may take to look who can change the files that a config names. What takes over was tried before, with all the time.
const (
	lookPatience = 10 * time.Second
	lookBriefly  = 300 * time.Millisecond
)

func runCommand(version string) *cobra.Command {
	return runCommandWith(func(f *runFlags, cmd *cobra.Command, args []string) error { return f.run(cmd, version, args) })
}

// runCommandWith is the command with something else done than to run.
func runCommandWith(do func(f *runFlags, cmd *cobra.Command, args []string) error) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...] | run --config FILE",
		Short: "Run a command, or a config's services, only while active",
		Long: "Runs COMMAND only while this node is active, and stands by otherwise. Start it on two hosts or more.\n\n" +
			"The command gets UNDERSTUDY_SERVICE, UNDERSTUDY_NODE and UNDERSTUDY_TOKEN, a number that grows with every\n" +
			"activation: hand it to storage that can refuse an older one. It, and all that it forks, is dead before another\n" +
			"node can become active. With --once the command runs to its end once on each node whose turn comes, and its\n" +
			"exit code is that of run.",
		Example: "  understudy run --zk zk1,zk2,zk3 --service db -- /usr/bin/db --port 80\n" +
			"  understudy run --config /etc/understudy/understudy.yaml",
		RunE: func(cmd *cobra.Command, args []string) error { return do(&f, cmd, args) },
	}
	d := config.DefaultService()
	f.cluster.register(cmd)
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&f.service, "service", "", "name of the service (default: the command's base name)")
	flags.StringVar(&f.node, "node", "", "name of this node, unique in the cluster (default: the hostname)")
	flags.DurationVar(&f.session, "session-timeout", config.Default().ZooKeeper.SessionTimeout, "ZooKeeper session timeout")
	flags.DurationVar(&f.grace, "grace", d.GraceDelay, "how long a former active that cannot be asked is waited for")
	flags.StringVar(&f.stopSignal, "stop-signal", d.Processes[0].StopSignal.String(), "signal that asks the command to stop")
	flags.DurationVar(&f.stopTimeout, "stop-timeout", d.Processes[0].StopTimeout, "how long it may take to stop before it is killed")
	flags.StringVar(&f.restart, "restart", string(d.Restart.Policy), "when the command ends: on-failure, always or never start it again here")
	flags.StringVar(&f.order, "election", string(d.Election), "race (everybody watches the lock) or queue (first come, first served)")
	flags.StringVar(&f.contain, "contain", string(d.Contain), "how the process tree is held: auto, cgroup, pidns or strict")
	flags.BoolVar(&f.once, "once", false, "end when the command ends, with its exit code")
	flags.StringVar(&f.http, "http", "", "serve who is active over HTTP at this address, as in 127.0.0.1:8437 (default: nothing is served)")
	flags.StringVar(&f.agentSecret, "agent-secret", "", "`file` that holds a secret which all nodes share: whoever takes over can then "+
		"ask this node's agent for the command's death instead of waiting (default: nobody can ask)")
	flags.StringVar(&f.agentListen, "agent-listen", defaultAgent, "where the agent listens; each supervisor of a host needs a port of its own")
	flags.StringVar(&f.logLevel, "log-level", "info", "trace, debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	completeRun(cmd)
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command, version string, args []string) error {
	next := imageOf(cmd.Context())
	defer next.Hush()
	legacy, err := child.Legacy()
	if err != nil {
		return err
	}
	f.takesOver = legacy != nil
	next.KeepEnviron() // without what was handed over
	c, err := f.config(cmd, args)
	if err != nil {
		startedBy(hclog.NewNullLogger()).refused(err)
		return err
	}
	log := newLog(c.Log)
	boss := startedBy(log)
	auth, err := credentials(c)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		log.Warn("the host has no name", "error", err)
	}
	conf := supervisor.Config{
		Node: c.Node, Host: host, Version: version, Servers: servers(c), Root: c.ZooKeeper.Root, Timeout: c.ZooKeeper.SessionTimeout, Floor: c.ZooKeeper.MinSessionTimeout,
		Auth: auth, TLS: secured(c), Logger: log, Legacy: legacy, Upgrade: supervisor.Upgrade{Asked: next.Asked, Become: next.Become}, Strangers: c.ZooKeeper.Strangers(),
	}
	tellExposure(c.ZooKeeper, log)
	next.Begin(handoff.OfferOf(conf.Node, conf.Root, conf.Servers), log)
	if conf.Agent, err = listen(c, log); err != nil {
		return err
	}
	if c.Watchdog.Mode != config.WatchdogOff {
		conf.Watchdog = &supervisor.Watchdog{Device: c.Watchdog.Device, Required: c.Watchdog.Mode == config.WatchdogRequired}
	}
	if conf.Agent != nil {
		f.keys = conf.Agent.Keys
	}
	conf.Services = f.services(c)
	conf.Warnings = tellDangers(log, nil, f.warnings)
	var server *web.Server
	if boss != nil || c.HTTP.Listen != "" { // else nobody looks
		board := web.NewBoard(child.Now)
		conf.Observer = board
		server = serve(c, conf, board)
		boss.observe(&conf, board)
	}
	if len(args) > 0 {
		return supervise(cmd.Context(), conf, nil, server, boss, next)
	}
	changes := make(chan supervisor.Change)
	conf.Changes = changes
	following := f.follow(cmd, c, log, changes)
	following.read, following.warned = boss.reloaded, conf.Warnings
	return supervise(cmd.Context(), conf, following, server, boss, next)
}

// tellExposure logs, once, what strangers can do.
func tellExposure(z config.ZooKeeper, log hclog.Logger) {
	if note := z.Exposure(); note != "" {
		log.Warn("nothing is known to keep strangers from ZooKeeper", "note", note)
	}
}

// tellDangers logs which settings are dangerous, those that were told before left out, and makes lines of all.
func tellDangers(log hclog.Logger, before []string, now config.Faults) []string {
	var list []string
	for _, f := range now {
		text := f.String()
		if list = append(list, text); !slices.Contains(before, text) {
			log.Warn("a setting is dangerous", "warning", text)
		}
	}
	return list
}

func (f *runFlags) services(c *config.Config) []supervisor.Service {
	all := make([]supervisor.Service, 0, len(c.Services))
	for _, name := range c.ServiceNames() {
		all = append(all, service(name, c.Services[name], f.once, f.keys))
	}
	return all
}

// config makes one Config, of the file or of the flags.
func (f *runFlags) config(cmd *cobra.Command, args []string) (*config.Config, error) {
	if len(args) == 0 {
		if cmd.ArgsLenAtDash() >= 0 {
			return nil, usage("no COMMAND stands behind `--`")
		}
		if f.cluster.Config == "" {
			f.cluster.Config = config.DefaultFile
			if _, err := os.Stat(config.DefaultFile); errors.Is(err, os.ErrNotExist) {
				return nil, usage("nothing to run: say `understudy run --zk HOSTS -- COMMAND`, or `--config FILE` (%s does not exist)", config.DefaultFile)
			}
		}
		for _, name := range []string{"service", "session-timeout", "grace", "stop-signal", "stop-timeout", "restart", "election", "contain", "once", "agent-listen", "agent-secret"} {
			if cmd.Flags().Changed(name) {
				return nil, usage("--%s goes with a COMMAND; in a config file it is a key", name)
			}
		}
		r := config.Read(f.cluster.Config)
		patience := lookPatience
		if f.takesOver {
			patience = lookBriefly
		}
		warnings, grave := r.Dangers(patience)
		r, f.warnings = r.Refused(grave), warnings
		if err := r.Err(); err != nil {
			return nil, usageError{err}
		}
		c, err := r.Config, f.cluster.apply(r.Config)
		if err == nil {
			err = f.override(cmd, c)
		}
		if err == nil {
			err = enoughFiles(c)
		}
		return c, err
	}
	if i := slices.Index(args, "--"); i > 0 && cmd.ArgsLenAtDash() < 0 { // as in: run --zk zk1 zk2 -- COMMAND
		return nil, usage("what is %q, before `--`? The command stands behind it, and servers are separated by commas", args[0])
	}
	if f.cluster.Config != "" {
		return nil, usage("either `--config FILE` or `-- COMMAND`, not both")
	}
	return f.single(cmd, args)
}

// override puts the flags that go with a file over what it says.
func (f *runFlags) override(cmd *cobra.Command, c *config.Config) error {
	if cmd.Flags().Changed("log-level") {
		c.Log.Level = config.LogLevel(f.logLevel)
	}
	if cmd.Flags().Changed("log-format") {
		c.Log.Format = config.LogFormat(f.logFormat)
	}
	if cmd.Flags().Changed("http") {
		c.HTTP.Listen = f.http
	}
	if f.node != "" {
		c.Node = f.node
	}
	return c.Validate()
}

// single is the Config of one wrapped command.
func (f *runFlags) single(cmd *cobra.Command, args []string) (*config.Config, error) {
	c, err := f.cluster.load()
	if err != nil {
		return nil, err
	}
	if c.Node = f.node; c.Node == "" {
		if c.Node, err = os.Hostname(); err != nil {
			return nil, usage("--node: the host has no name to take instead: %w", err)
		}
	}
	if f.service == "" {
		f.service = filepath.Base(args[0])
	}
	if err := f.agent(cmd, c); err != nil {
		return nil, err
	}
	c.ZooKeeper.SessionTimeout = f.session
	c.HTTP.Listen = f.http
	c.Log = config.Log{Level: config.LogLevel(f.logLevel), Format: config.LogFormat(f.logFormat)}
	s := config.DefaultService(args...)
	program := &s.Processes[0]
	s.GraceDelay, program.StopTimeout = f.grace, f.stopTimeout
	s.Restart.Policy, s.Election, s.Contain = config.RestartPolicy(f.restart), config.Election(f.order), config.Contain(f.contain)
	if err := program.StopSignal.UnmarshalText([]byte(f.stopSignal)); err != nil {
		return nil, usage("--stop-signal: %w", err)
	}
	c.Services = map[string]config.Service{f.service: s}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, enoughFiles(c)
}

// defaultAgent is where an agent listens that has a secret.
const defaultAgent = ":8438"

// agent is the agent that the flags ask for: none without a secret.
func (f *runFlags) agent(cmd *cobra.Command, c *config.Config) error {
	if f.agentSecret == "" {
		if cmd.Flags().Changed("agent-listen") {
			return usage("--agent-listen takes --agent-secret FILE: without a secret, anybody could have the command killed")
		}
		return nil
	}
	file, err := filepath.Abs(f.agentSecret)
	if err != nil {
		return usage("--agent-secret: %w", err)
	}
	c.Fencing.Agent = &config.Agent{Listen: f.agentListen, SecretFile: file}
	if warning := keyfile.Exposed(file); warning != "" {
		f.warnings = config.Faults{{Key: "--agent-secret", Message: warning, Danger: true}}
	}
	return nil
}

// supervise runs until a signal, or until all is done. A second signal kills the children instead of asking them.
func supervise(ctx context.Context, conf supervisor.Config, config *follower, server *web.Server, boss *manager, next *handoff.Image) error {
	// The signals that end other commands are this one's own business.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	child.KeepThreads()
	hurry := make(chan struct{})
	conf.Hurry = hurry
	thread := make(chan func())
	conf.Thread = thread
	var result error
	var group run.Group
	group.Add(func() error {
		status, err := supervisor.Run(ctx, conf)
		switch {
		case err == nil && status != nil:
			err = exitStatus(status.Code)
		case err == nil && len(conf.Services) > 0 && conf.Services[0].Once: // whoever waits for the command's end must not take this for one
			err = errors.New("stopped before the command had run here")
		}
		result = err
		return nil
	}, func(error) { cancel() })
	if config != nil {
		following, enough := context.WithCancel(ctx)
		group.Add(func() error { return config.run(following) }, func(error) { enough() })
	}
	if server != nil {
		serving, enough := context.WithCancel(context.WithoutCancel(ctx)) // for as long as the supervisor runs
		group.Add(func() error { return server.Run(serving) }, func(error) { enough() })
	}

	if boss != nil {
		telling, enough := context.WithCancel(context.WithoutCancel(ctx))
		group.Add(func() error { return boss.run(telling) }, func(error) { enough() })
	}

	checking, enough := context.WithCancel(ctx)
	group.Add(func() error { return next.Run(checking) }, func(error) { enough() })

	deaf := make(chan os.Signal, 1)
	signal.Notify(deaf, syscall.SIGPIPE) // who read the log is gone: no reason to stop a child
	defer signal.Stop(deaf)
	over := make(chan struct{})
	group.Add(func() error {
		for asked := 0; ; {
			select {
			case sig := <-next.Signals:
				if sig == syscall.SIGHUP && config != nil {
					boss.hangup()
					config.asked()
					continue
				}
				conf.Logger.Info("stopping", "signal", sig.String())
				cancel()
				switch asked++; asked {
				case 1:
					boss.stopping()
				case 2:
					close(hurry)
				}
			case answer := <-next.Heeded:
				answer <- next.MayGo(asked)
			case <-over:
				return nil
			}
		}
	}, func(error) { close(over) })
	if err := onMainThread(group.Run, thread); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return result
}

// onMainThread runs f beside, and meanwhile here, where main has locked the thread, what has to run on the main thread.
func onMainThread(f func() error, thread <-chan func()) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	for {
		select {
		case errand := <-thread:
			errand()
		case err := <-done:
			return err
		}
	}
}
