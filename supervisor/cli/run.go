package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/oklog/run"
	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/fencing"
	"understudy/supervisor"
	"understudy/supervisor/config"
)

// runFlags are those of `run`. Those of a single command make the same Config that a file would.
type runFlags struct {
	cluster                      clusterFlags
	service, node                string
	session, grace, stopTimeout  time.Duration
	stopSignal, restart, order   string
	contain, logLevel, logFormat string
	once                         bool
}

func runCommand(version string) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...] | run --config FILE",
		Short: "Run a command, or the services of a config file, only while this node is active",
		Long: "Runs COMMAND only while this node is active, and stands by otherwise. Start it on two hosts or more.\n\n" +
			"The command gets UNDERSTUDY_SERVICE, UNDERSTUDY_NODE and UNDERSTUDY_TOKEN, a number that grows with every\n" +
			"activation: hand it to storage that can refuse an older one. It, and all that it forks, is dead before another\n" +
			"node can become active. With --once the command runs to its end once on each node whose turn comes, and its\n" +
			"exit code is that of run.",
		Example: "  understudy run --zk zk1,zk2,zk3 --service db -- /usr/bin/my-server --port 80\n" +
			"  understudy run --config /etc/understudy/understudy.yaml",
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, version, args) },
	}
	d := config.DefaultService()
	f.cluster.register(cmd)
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&f.service, "service", "", "name of the service (default: the command's base name)")
	flags.StringVar(&f.node, "node", "", "name of this node, unique in the cluster (default: the hostname)")
	flags.DurationVar(&f.session, "session-timeout", config.Default().ZooKeeper.SessionTimeout, "ZooKeeper session timeout")
	flags.DurationVar(&f.grace, "grace", d.GraceDelay, "how long a former active that cannot be asked is waited for")
	flags.StringVar(&f.stopSignal, "stop-signal", d.StopSignal.String(), "signal that asks the command to stop")
	flags.DurationVar(&f.stopTimeout, "stop-timeout", d.StopTimeout, "how long it may take to stop before it is killed")
	flags.StringVar(&f.restart, "restart", string(d.Restart.Policy), "when the command ends: on-failure, always or never start it again here")
	flags.StringVar(&f.order, "election", string(d.Election), "race (everybody watches the lock) or queue (first come, first served)")
	flags.StringVar(&f.contain, "contain", string(d.Contain), "how the process tree is held: auto, cgroup, pidns or strict")
	flags.BoolVar(&f.once, "once", false, "end when the command ends, with its exit code")
	flags.StringVar(&f.logLevel, "log-level", "info", "trace, debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command, version string, args []string) error {
	c, err := f.config(cmd, args)
	if err != nil {
		return err
	}
	log := hclog.New(&hclog.LoggerOptions{
		Name: "understudy", Level: hclog.LevelFromString(string(c.Log.Level)), JSONFormat: c.Log.Format == config.LogJSON,
		Output: os.Stderr,
	})
	auth, err := credentials(c, log)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		log.Warn("the host has no name", "error", err)
	}
	conf := supervisor.Config{
		Node: c.Node, Host: host, Version: version, Servers: servers(c), Root: c.ZooKeeper.Root, Timeout: c.ZooKeeper.SessionTimeout,
		Auth: auth, Logger: log,
	}
	for _, name := range c.ServiceNames() {
		conf.Services = append(conf.Services, translate(name, c.Services[name], f.once))
	}
	return supervise(cmd.Context(), conf, len(args) > 0)
}

// config makes one Config, of the file or of the flags.
func (f *runFlags) config(cmd *cobra.Command, args []string) (*config.Config, error) {
	if len(args) == 0 {
		if f.cluster.Config == "" {
			f.cluster.Config = config.DefaultFile
			if _, err := os.Stat(config.DefaultFile); errors.Is(err, os.ErrNotExist) {
				return nil, usage("nothing to run: say `understudy run --zk HOSTS -- COMMAND`, or `--config FILE` (%s does not exist)", config.DefaultFile)
			}
		}
		for _, name := range []string{"service", "session-timeout", "grace", "stop-signal", "stop-timeout", "restart", "election", "contain", "once"} {
			if cmd.Flags().Changed(name) {
				return nil, usage("--%s goes with a COMMAND; in a config file it is a key", name)
			}
		}
		c, err := f.cluster.load()
		if err == nil && f.node != "" {
			c.Node = f.node
			err = c.Validate()
		}
		if cmd.Flags().Changed("log-level") {
			c.Log.Level = config.LogLevel(f.logLevel)
		}
		if cmd.Flags().Changed("log-format") {
			c.Log.Format = config.LogFormat(f.logFormat)
		}
		return c, err
	}
	if f.cluster.Config != "" {
		return nil, usage("either `--config FILE` or `-- COMMAND`, not both")
	}
	return f.single(args)
}

// single is the Config of one wrapped command.
func (f *runFlags) single(args []string) (*config.Config, error) {
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
	c.ZooKeeper.SessionTimeout = f.session
	c.Log = config.Log{Level: config.LogLevel(f.logLevel), Format: config.LogFormat(f.logFormat)}
	s := config.DefaultService()
	s.Command, s.GraceDelay, s.StopTimeout = args, f.grace, f.stopTimeout
	s.Restart.Policy, s.Election, s.Contain = config.RestartPolicy(f.restart), config.Election(f.order), config.Contain(f.contain)
	if err := s.StopSignal.UnmarshalText([]byte(f.stopSignal)); err != nil {
		return nil, usage("--stop-signal: %w", err)
	}
	c.Services = map[string]config.Service{f.service: s}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// translate makes the supervisor's view of a service.
func translate(name string, s config.Service, once bool) supervisor.Service {
	v := supervisor.Service{
		Name: name, Command: s.Command, Dir: s.WorkingDir, Order: election.Order(s.Election), Contain: string(s.Contain),
		StopSignal: syscall.Signal(s.StopSignal), StopTimeout: s.StopTimeout, Once: once,
		Restart: supervisor.Restart{
			Policy: string(s.Restart.Policy), Delay: s.Restart.Delay, MaxDelay: s.Restart.MaxDelay, GiveUpAfter: s.Restart.GiveUpAfter,
			Within: s.Restart.Within, RejoinAfter: s.Restart.RejoinAfter,
		},
		Fencing: supervisor.FencingPolicy{Grace: s.GraceDelay, OnFailure: fencing.OnFailure(s.Fencing.OnFailure)},
	}
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		v.Env = append(v.Env, key+"="+s.Env[key])
	}
	for _, m := range s.Fencing.Methods {
		v.Fencing.Steps = append(v.Fencing.Steps, fencing.Step{Method: fencing.Exec{Command: m.Exec.Command}, Timeout: m.Exec.Timeout})
	}
	return v
}

// supervise runs until a signal, or until all is done. A second signal kills the children instead of asking them.
func supervise(ctx context.Context, conf supervisor.Config, hangup bool) error {
	// The signals that end other commands are this one's own business.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	hurry := make(chan struct{})
	conf.Hurry = hurry
	var result error
	var group run.Group
	group.Add(func() error {
		status, err := supervisor.Run(ctx, conf)
		if err == nil && status != nil {
			err = exitStatus(status.Code)
		}
		result = err
		return nil
	}, func(error) { cancel() })

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	over := make(chan struct{})
	group.Add(func() error {
		for asked := 0; ; {
			select {
			case sig := <-signals:
				if sig == syscall.SIGHUP && !hangup {
					conf.Logger.Warn("this version takes up a changed config at its next start only", "signal", sig.String())
					continue
				}
				conf.Logger.Info("stopping", "signal", sig.String())
				cancel()
				if asked++; asked == 2 {
					close(hurry)
				}
			case <-over:
				return nil
			}
		}
	}, func(error) { close(over) })
	if err := group.Run(); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return result
}
