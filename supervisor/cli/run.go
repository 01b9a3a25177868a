package cli

import (
	"os"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/fencing/agent"
	"understudy/supervisor"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/control/web"
	"understudy/supervisor/handoff"
)

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
			"node can become active. With --once each node that becomes active runs the command once, to its end, and\n" +
			"exits with its exit code.",
		Example: "  understudy run --zk zk1,zk2,zk3 --service db -- /usr/bin/db --port 80\n" +
			"  understudy run --config /etc/understudy/understudy.yaml",
		RunE: func(cmd *cobra.Command, args []string) error { return do(&f, cmd, args) },
	}
	f.register(cmd)
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command, version string, args []string) error {
	next := imageOf(cmd.Context())
	defer next.Hush()
	legacy, err := child.Legacy()
	if err != nil {
		return err
	}
	next.KeepEnviron()                         // without what was handed over
	l, err := f.load(cmd, args, legacy != nil) // programs run, whose leases end if this takes long
	if err != nil {
		startedBy(hclog.NewNullLogger()).refused(err)
		return err
	}
	c := l.Config
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
	var keys *agent.Keys
	if conf.Agent != nil {
		keys = conf.Agent.Keys
	}
	conf.Services = services(c, f.command.once, keys)
	conf.Warnings = tellDangers(log, nil, l.warnings)
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
	following := &follower{
		flags: f, cmd: cmd, log: log, changes: changes, keys: keys, hangup: make(chan struct{}, 1), read: boss.reloaded,
		first: c, last: c, warned: conf.Warnings,
	}
	return supervise(cmd.Context(), conf, following, server, boss, next)
}

// tellExposure logs, once, what strangers can do.
func tellExposure(z config.ZooKeeper, log hclog.Logger) {
	if note := z.Exposure(); note != "" {
		log.Warn("anyone may be able to connect to ZooKeeper", "note", note)
	}
}

// tellDangers logs which settings are dangerous, those that were told before left out, and makes lines of all.
func tellDangers(log hclog.Logger, before []string, now config.Faults) []string {
	var list []string
	for _, f := range now {
		text := f.String()
		if list = append(list, text); !slices.Contains(before, text) {
			log.Warn("dangerous setting", "warning", text)
		}
	}
	return list
}
