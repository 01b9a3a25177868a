package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/printable"
	"understudy/supervisor/safefile"
)

// runFlags are those of `run`.
type runFlags struct {
	cluster    clusterFlags
	node, http string
	log        config.Logging
	command    commandFlags
}

// commandFlags go with a COMMAND: they make the same Config that a file would.
type commandFlags struct {
	set        *pflag.FlagSet
	name       string
	lease      time.Duration
	service    config.Service // with one program
	stopSignal string
	agent      config.Agent
	once       bool
	hold, wait time.Duration
}

// loaded is the config of a run.
type loaded struct {
	*config.Config
	warnings config.Faults                          // dangerous settings
	doubts   config.Faults                          // of flags: what is probably not meant
	sum      string                                 // of the files; empty: it is made of flags
	files    config.Files                           // that it was read from
	looked   map[string]bool                        // the files that warnings may be about
	at       func(key, message string) config.Fault // nil: no file has the keys
}

// placed is an error that begins with a key, as one of the file.
func (l loaded) placed(err error) error {
	if l.at == nil {
		return inFlags(err)
	}
	key, message, _ := strings.Cut(err.Error(), ": ")
	return usageError{config.Faults{l.at(key, message)}}
}

// defaultAgent is where an agent listens that has a secret.
const defaultAgent = ":8438"

func (f *runFlags) register(cmd *cobra.Command) {
	f.cluster.register(cmd)
	cmd.Flags().Lookup("config").Usage = "run the services of a config `file`, in place of COMMAND"
	f.command.register()
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.AddFlagSet(f.command.set)
	flags.StringVar(&f.node, "node", "", "name of this node, unique in the cluster (default: the hostname)")
	flags.StringVar(&f.http, "http", "", "serve the status over HTTP at this address, as in 127.0.0.1:8437 (default: no HTTP)")
	flags.StringVar((*string)(&f.log.Level), "log-level", "info", "trace, debug, info, warn or error")
	flags.StringVar((*string)(&f.log.Format), "log-format", "text", "text or json")
}

func (f *commandFlags) register() {
	f.service = config.DefaultService()
	s, program := &f.service, &f.service.Processes[0]
	f.set = pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := f.set
	flags.StringVar(&f.name, "service", "", "name of the service (default: the program's base name)")
	flags.DurationVar(&f.lease, "lease", config.Default().ZooKeeper.Lease,
		"how long the command may run after the last acknowledged heartbeat")
	flags.DurationVar(&s.GraceDelay, "grace", s.GraceDelay, "how long to wait for a previous node that does not answer")
	flags.StringVar(&f.stopSignal, "stop-signal", program.StopSignal.String(), "signal that asks the program to stop")
	flags.DurationVar(&program.StopTimeout, "stop-timeout", program.StopTimeout, "how long it may take to stop before it is killed")
	flags.StringVar((*string)(&s.Restart.Policy), "restart", string(s.Restart.Policy),
		"when to start the program again here after its end: on-failure, always or never")
	flags.StringVar((*string)(&s.Election), "election", string(s.Election),
		"race (every standby watches the lock) or queue (first come, first served)")
	flags.StringVar((*string)(&s.Contain), "contain", string(s.Contain), "how to contain the process tree: auto, cgroup, pidns or strict")
	flags.BoolVar(&f.once, "once", false, "end when the program ends, with its exit code")
	flags.DurationVar(&f.hold, "hold", 0,
		"with --once, how long the lock is kept after the program's end, so that no node runs the same job again")
	flags.DurationVar(&f.wait, "wait", 0,
		"end with code 75 unless this node gets the lock within this time; 0: after one attempt (default: wait until it comes)")
	flags.StringVar(&f.agent.SecretFile, "agent-secret", "",
		"`file` that holds a secret which all nodes share: a node that takes over can then "+
			"ask this node's agent to prove that the program is dead, instead of waiting (default: no agent)")
	flags.StringVar(&f.agent.Listen, "agent-listen", defaultAgent,
		"where the agent listens; each supervisor of a host needs a port of its own")
}

// load makes one Config, of the file or of the flags.
func (f *runFlags) load(cmd *cobra.Command, args []string) (loaded, error) {
	if len(args) == 0 {
		return f.file(cmd)
	}
	if i := slices.Index(args, "--"); i > 0 && cmd.ArgsLenAtDash() < 0 { // as in: run --zk zk1 zk2 -- COMMAND
		return loaded{}, usage("unexpected %q before `--`: the command follows `--`, and commas separate servers", args[0])
	}
	if f.cluster.Config != "" {
		return loaded{}, usage("either `--config FILE` or `-- COMMAND`, not both")
	}
	return f.single(args)
}

func (f *runFlags) file(cmd *cobra.Command) (loaded, error) {
	if cmd.ArgsLenAtDash() >= 0 {
		return loaded{}, usage("no COMMAND follows `--`")
	}
	if f.cluster.Config == "" {
		f.cluster.Config = config.DefaultFile
		if _, err := os.Stat(config.DefaultFile); errors.Is(err, os.ErrNotExist) {
			return loaded{}, usage("nothing to run: say `understudy run --zk HOSTS -- COMMAND`, or `--config FILE` (%s does not exist)",
				config.DefaultFile)
		}
	}
	var given string
	f.command.set.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && given == "" {
			given = flag.Name
		}
	})
	switch given {
	case "":
	case "once", "hold", "wait":
		return loaded{}, usage("--%s goes with a COMMAND", given)
	default:
		return loaded{}, usage("--%s goes with a COMMAND; in a config file it is a key", given)
	}
	if f.node != "" || cmd.Flags().Changed("node") {
		if why := config.NodeNameFault(f.node); why != "" {
			return loaded{}, usage("--node: %s", why)
		}
	}
	r := config.Read(f.cluster.Config, f.node)
	l, err := f.settle(cmd, r)
	if faults, ok := errors.AsType[config.Faults](err); ok {
		err = usageError{faults}
	}
	return l, err
}

// configFile is where another command finds the config.
func (f *runFlags) configFile() string {
	if f.cluster.Config == "" {
		return ""
	}
	if at, err := filepath.Abs(f.cluster.Config); err == nil {
		return at
	}
	return f.cluster.Config
}

// settle puts the flags that go with a file over what it says, and refuses what cannot be run here.
func (f *runFlags) settle(cmd *cobra.Command, r config.LoadResult) (loaded, error) {
	warnings, refused, looked := r.Dangers(lookPatience)
	r = r.Refused(refused)
	if r.Config != nil {
		warnings = append(warnings, crowded(r)...)
	}
	l, err := loaded{Config: r.Config, warnings: warnings, sum: r.Sum, files: r.Files, looked: looked, at: r.At}, r.Err()
	if err == nil {
		err = f.cluster.apply(l.Config)
	}
	if err != nil {
		return l, err
	}
	flags := cmd.Flags()
	if flags.Changed("log-level") {
		l.Log.Level = f.log.Level
	}
	if flags.Changed("log-format") {
		l.Log.Format = f.log.Format
	}
	if flags.Changed("http") {
		l.HTTP.Listen = f.http
	}
	return l, l.Validate()
}

// crowded warns of more services than this process may open files for.
func crowded(r config.LoadResult) (warnings config.Faults) {
	if why := child.Crowded(len(r.Config.Services)); why != "" {
		f := r.At("services", why+". This node does not take the others (on this machine)")
		f.Danger = true
		warnings = config.Faults{f}
	}
	return warnings
}

// single is the Config of one wrapped command.
func (f *runFlags) single(args []string) (loaded, error) {
	if ext := filepath.Ext(args[0]); len(args) == 1 && (ext == ".yaml" || ext == ".yml") {
		return loaded{}, usage("%s is no program: `understudy run --config %[1]s` runs the services of a config", args[0])
	}
	switch {
	case args[0] == "":
		return loaded{}, usage("the program's name is empty")
	case strings.HasPrefix(args[0], "-"):
		return loaded{}, usage("%q is taken for the program's name: options come before `--`", args[0])
	}
	if _, err := exec.LookPath(args[0]); err != nil && len(args) == 1 && strings.Contains(args[0], " ") {
		if strings.ContainsAny(args[0], "|&;<>$`") {
			return loaded{}, usage("%q is taken for the name of one program, and no shell runs it: write -- sh -c %s",
				args[0], printable.Word(args[0]))
		}
		return loaded{}, usage("%q is taken for the name of one program: leave the quotes off, as in -- %[1]s", args[0])
	}
	if f.cluster.ZK == "" {
		return loaded{}, usage("--zk is missing: give host:port[,host:port...], or set UNDERSTUDY_ZK")
	}
	c, err := f.cluster.load()
	l := loaded{Config: c}
	if err != nil {
		return l, err
	}
	if c.Node = f.node; c.Node == "" {
		if c.Node, err = os.Hostname(); err != nil {
			return l, usage("--node: the host has no name to take instead: %w", err)
		}
	}
	if l.warnings, err = f.command.askable(c); err != nil {
		return l, err
	}
	c.ZooKeeper.Lease = f.command.lease
	c.HTTP.Listen = f.http
	c.Log = f.log
	s := f.command.service
	program := &s.Processes[0]
	program.Command = args
	if err := program.StopSignal.UnmarshalText([]byte(f.command.stopSignal)); err != nil {
		return l, usage("--stop-signal: %w", err)
	}
	if f.command.name == "" {
		f.command.name = filepath.Base(args[0])
		if why := config.NodeNameFault(f.command.name); why != "" {
			return l, usage("give --service NAME, because of the program's: %s", why)
		}
	}
	if err := f.command.together(); err != nil {
		return l, err
	}
	c.Services = map[string]config.Service{f.command.name: s}
	if err := l.Validate(); err != nil {
		return l, inFlags(err)
	}
	l.doubts, _ = errors.AsType[config.Faults](inFlags(l.Doubts()))
	if !f.command.set.Changed("service") && slices.Contains(interpreters, f.command.name) {
		l.doubts = append(l.doubts, config.Fault{
			Key:     "--service",
			Message: "without it this is the service " + f.command.name + ", with whatever " + f.command.name + " runs on other nodes",
		})
	}
	return l, nil
}

// interpreters have the names of no services.
var interpreters = []string{"bash", "dash", "env", "java", "node", "perl", "php", "python", "python3", "ruby", "sh"}

// tellDoubts logs what `check` tells of a file.
func (l loaded) tellDoubts(log hclog.Logger) {
	for _, f := range l.doubts {
		log.Warn("doubtful flag", "warning", f.String())
	}
}

// askable gives the node the agent that the flags ask for: none without a secret.
func (f *commandFlags) askable(c *config.Config) (warnings config.Faults, err error) {
	if f.agent.SecretFile == "" {
		if f.set.Changed("agent-listen") {
			return nil, usage("--agent-listen takes --agent-secret FILE: without a secret, any client could have the command killed")
		}
		return nil, nil
	}
	a := f.agent
	if a.SecretFile, err = filepath.Abs(a.SecretFile); err != nil {
		return nil, usage("--agent-secret: %w", err)
	}
	c.Fencing.Agent = &a
	if err := safefile.Own(a.SecretFile, safefile.Secret); err != nil {
		warnings = config.Faults{{Key: "--agent-secret", Message: err.Error(), Danger: true}}
	}
	return warnings, nil
}
