package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/fencing/agent"
	"understudy/supervisor"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/notify"
	"understudy/supervisor/child/reexec"
	"understudy/supervisor/child/wire"
	"understudy/supervisor/config"
	"understudy/supervisor/control/web"
	"understudy/supervisor/handoff"
	"understudy/supervisor/printable"
	"understudy/supervisor/unit"
)

// lookPatience is how long it may take to look who can change the files that a config names.
const lookPatience = 10 * time.Second

func runCommand(version string) *cobra.Command {
	return runCommandWith(func(f *runFlags, cmd *cobra.Command, args []string) error { return f.run(cmd, version, args) })
}

// runCommandWith is the command with something else done than to run.
func runCommandWith(do func(f *runFlags, cmd *cobra.Command, args []string) error) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...] | run --config FILE",
		Short: "Run a program, or a config's services, only while active",
		Long: "Runs COMMAND only while this node is active, and stands by otherwise. Start it on two hosts or more.\n\n" +
			"The program gets UNDERSTUDY_SERVICE, UNDERSTUDY_NODE and UNDERSTUDY_TOKEN, a number that grows with every\n" +
			"activation. Hand the token to storage that can refuse an older one. The program, and all that it forks, is dead\n" +
			"before another node can become active. With --once each node that becomes active runs the program once, to its\n" +
			"end, and exits with its exit code. The program then has this command's stdin, unless that is a terminal of\n" +
			"another user. With --wait 0 as well, a job that cron starts on several hosts never runs on two of them at once,\n" +
			"because the others exit with code 75.",
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
	handover, err := reexec.TakeState()
	if err != nil {
		return err
	}
	next.KeepEnviron() // without what was handed over
	l, err := f.load(cmd, args)
	if err != nil {
		startedBy(hclog.NewNullLogger()).refused(err)
		return err
	}
	c := l.Config
	log, flush := newLog(c.Log)
	defer flush()
	systemd := startedBy(log)
	if given := f.cluster; given.Config != "" && (given.Root != "" || given.given()) {
		log.Warn("flags replace the config's ZooKeeper: a node that is started without them runs a copy of its own", "config", given.Config)
	}
	auth, err := credentials(c)
	if err != nil {
		return l.placed(err)
	}
	host, err := os.Hostname()
	if err == nil && !printable.IsHost(host) { // the other nodes would read nothing that has it
		host, err = "", fmt.Errorf("%q is not plainly one", host)
	}
	if err != nil {
		log.Warn("the host has no name", "error", err)
	}
	conf := supervisor.Config{
		Node: c.Node, Host: host, File: f.configFile(), Sum: l.sum, Version: version,
		Servers: servers(c), Root: c.ZooKeeper.Root, Cluster: c.ZooKeeper.Name, Lease: c.ZooKeeper.Lease,
		Auth: auth, TLS: secured(c), Logger: log, JSONLog: c.Log.Format == config.LogJSON, Handover: handover,
		Upgrade: supervisor.Upgrade{
			Asked: next.Asked, Hangs: box.Hangs,
			Become: func(state []byte) error { flush(); return next.Become(state) },
		},
	}
	conf.Stuck = func(service string, stood time.Duration) {
		standsStill(log, flush, service, stood, deciders)
		os.Exit(1) // P4: nothing is cleaned up, the guardians end the programs, as after a crash
	}
	tellExposure(c.ZooKeeper, log)
	next.Begin(handoff.OfferOf(conf.Node, conf.Root, conf.Cluster, conf.Servers), log)
	if conf.Agent, err = listen(c, log); err != nil {
		return l.placed(err)
	}
	if c.Watchdog.Mode != config.WatchdogOff {
		conf.Watchdog = &c.Watchdog
	}
	conf.Notify = c.Notify
	var keys *agent.Keys
	if conf.Agent != nil {
		keys = conf.Agent.Keys
	}
	conf.Services = services(c, f.command.once, keys)
	var wait *lockWait
	if len(args) > 0 {
		conf.Services[0].Hold = f.command.hold
		if wait = f.command.waits(handover != nil); wait != nil {
			conf.Services[0].Wait = wait.Patience
		}
	}
	if handover == nil {
		defer tellEnsemble(c, auth, log)()
	}
	conf.Warnings = tellDangers(log, nil, l.warnings)
	l.tellDoubts(log)
	conf.Memory, conf.SessionRecord = supervisor.NewMemory(conf), supervisor.NewSessionRecord(conf)
	conf.Lacks = func(s config.Service) error { return cmp.Or(s.Lacks(), unit.Unbounded(s, false), unit.Taken(s)) }
	conf.Neighbours = supervisor.NewNeighbours(conf)
	var server *web.Server
	if systemd != nil || c.HTTP.Listen != "" { // else nobody looks
		board := web.NewBoard(wire.Now)
		conf.Observer = board
		server = serve(c, &conf, board)
		systemd.observe(&conf, board)
	}
	if len(args) > 0 {
		err := supervise(cmd.Context(), conf, nil, wait, server, systemd, next)
		if errors.Is(err, errNoLock) {
			return f.missed(cmd.Context(), wait, conf.Node, f.command.name)
		}
		return err
	}
	changes := make(chan supervisor.Change)
	conf.Changes = changes
	following := &follower{
		flags: f, cmd: cmd, log: log, changes: changes, keys: keys, hangup: make(chan struct{}, 1), read: systemd.reloaded,
		first: c, last: c, warned: conf.Warnings, sum: l.sum, files: l.files, looked: l.looked, hurried: handover != nil,
	}
	next.Held = following.held
	return supervise(cmd.Context(), conf, following, nil, server, systemd, next)
}

// tellExposure logs, once, what strangers can do.
func tellExposure(z config.ZooKeeper, log hclog.Logger) {
	if note := z.Exposure(); note != "" {
		log.Warn("anyone may be able to connect to ZooKeeper", "note", note)
	}
}

// tellDangers logs which settings are dangerous, those that were told before left out, and makes lines of all.
func tellDangers(log hclog.Logger, before []string, now config.Faults) []string {
	if why := notify.Ignored(); why != "" {
		now = append(slices.Clip(now), config.Fault{Message: why})
	}
	var list []string
	for _, f := range now {
		text := f.String()
		list = append(list, text)
		if !slices.Contains(before, text) {
			log.Warn("dangerous setting", "warning", text)
		}
	}
	return list
}
