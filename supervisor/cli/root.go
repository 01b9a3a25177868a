// Package cli is the command line.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"understudy/election"
	"understudy/supervisor/child"
	"understudy/supervisor/config"
	"understudy/supervisor/handoff"
	"understudy/supervisor/printable"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
	exitLate   = 3
)

// usageError says that the words or the config are wrong.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errTimeout says that --timeout ran out.
var errTimeout = errors.New("timed out")

// exitStatus is a wrapped command's own exit code.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("the command ended with code %d", int(e)) }

// Main runs a command line and returns the exit code.
func Main(version string, args []string) int {
	ctx := context.Background()
	if len(args) > 0 && args[0] == "run" {
		ctx = withImage(ctx) // as early as can be: it may be another image's successor
		if err := child.Caught(); err != nil {
			fmt.Fprintln(os.Stderr, "understudy: signals that came during the exec:", err)
		}
	} else {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
	}
	root := Root(version)
	root.SetArgs(args)
	return exitCode(root.ExecuteContext(ctx))
}

// Root is the command that has all others, for those who describe them, too.
func Root(version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "understudy",
		Short: "One program, running on exactly one host, whatever breaks",
		Long: "Understudy makes any program highly available: it runs on one host of several, ZooKeeper decides on which,\n" +
			"and when that host, its network or the program dies, another one has taken over.\n\n" +
			"Commands that ask or order something take --zk or --config, or what UNDERSTUDY_ZK says, or else what " + config.DefaultFile + " says.\n\n" +
			"After `source <(understudy completion bash)` the tab key completes the names of services and nodes; likewise in zsh and fish.",
		Example: "  understudy demo\n" +
			"  understudy run --zk zk1,zk2,zk3 --service db -- /usr/bin/db --port 80\n" +
			"  understudy status --zk zk1,zk2,zk3",
		Version:       buildOf(version).String(),
		SilenceErrors: true, SilenceUsage: true,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%w%s (see `%s --help`)", err, nearFlag(cmd, err), cmd.CommandPath())
	})
	root.AddCommand(runCommand(version), checkCommand(), statusCommand(), historyCommand(), logsCommand(), switchoverCommand(),
		pauseCommand(), resumeCommand(), restartCommand(), reloadCommand(), fenceCommand(), devCommand(), demoCommand(), versionCommand(version), sweepCommand(), reexecCommand(), goesOnCommand())
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(helpCommand())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.InitDefaultCompletionCmd("")
	describeCompletion(root)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprint(".FlagUsagesWrapped ", lineWidth)))
	fold(root)
	return root
}

type imageKey struct{}

// withImage listens from now on, for imageOf.
func withImage(ctx context.Context) context.Context {
	i := handoff.NewImage()
	i.Listen()
	return context.WithValue(ctx, imageKey{}, i)
}

// imageOf is the image that listens since Main, or one that does so from now on.
func imageOf(ctx context.Context) *handoff.Image {
	if i, ok := ctx.Value(imageKey{}).(*handoff.Image); ok {
		return i
	}
	return imageOf(withImage(ctx))
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	fmt.Fprintln(os.Stderr, "understudy:", printable.Text(err.Error()))
	_, wrong := errors.AsType[usageError](err)
	_, faulty := errors.AsType[config.Faults](err)
	switch {
	case wrong || faulty:
		return exitUsage
	case errors.Is(err, errTimeout):
		return exitLate
	}
	return exitFailed
}

// helpCommand is cobra's, but that it refuses what there is not.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show what a command does", Example: "  understudy help fence confirm",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = subcommand(about, rest)
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
			if about, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, c := range about.Commands() {
					if c.IsAvailableCommand() {
						all = append(all, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// subcommand is for commands that do nothing of their own.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return usage("unknown command %q%s (see `%s --help`)", args[0], config.DidYouMean(args[0], names), cmd.CommandPath())
}

// nearFlag tells which flag may have been meant by one that does not exist.
func nearFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	var all []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all = append(all, "--"+f.Name)
		}
	})
	return config.DidYouMean("--"+unknown.GetSpecifiedName(), all)
}

// fold breaks the texts of a command, and of those below it, into lines that any terminal holds.
func fold(cmd *cobra.Command) {
	paragraphs := strings.Split(cmd.Long, "\n\n")
	for i, text := range paragraphs {
		paragraphs[i] = strings.Join(wrap(text, lineWidth), "\n")
	}
	cmd.Long = strings.Join(paragraphs, "\n\n")
	for _, c := range cmd.Commands() {
		fold(c)
	}
}

// exactArgs is cobra's, as a usage error.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %s (see `%s --help`)", cmd.Name(), what, cmd.CommandPath())
		}
		return nil
	}
}

// atMostOne is for commands that take a service or none.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("%s takes one service at most (see `%s --help`)", cmd.Name(), cmd.CommandPath())
	}
	return nil
}

// clusterFlags say which cluster a command is about.
type clusterFlags struct {
	ZK, Root, Config string
	set              *pflag.FlagSet
}

func (f *clusterFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.ZK, "zk", os.Getenv("UNDERSTUDY_ZK"), "ZooKeeper `servers`, host:port, comma-separated (env UNDERSTUDY_ZK)")
	cmd.Flags().StringVar(&f.Root, "root", "", "`path` in ZooKeeper below which everything is kept (default /understudy)")
	cmd.Flags().StringVar(&f.Config, "config", "", "take servers, root and credentials from a config `file`")
	f.set = cmd.Flags()
	complete(cmd, "zk", none)
	complete(cmd, "root", none)
}

// given tells whether the servers were named on the command line, and not by the environment.
func (f *clusterFlags) given() bool {
	return f.ZK != "" && (f.set == nil || f.set.Changed("zk"))
}

// load reads the config that the flags name, or makes one of them.
func (f *clusterFlags) load() (*config.Config, error) {
	c := config.Default()
	if f.Config != "" {
		loaded, err := config.LoadFile(f.Config)
		if err != nil {
			return nil, usageError{err}
		}
		c = loaded
	}
	return c, f.apply(c)
}

// apply puts the flags over what a file says.
func (f *clusterFlags) apply(c *config.Config) error {
	if f.ZK != "" && (f.Config == "" || f.given()) {
		servers, err := config.ParseServers(f.ZK)
		if err != nil {
			return usage("--zk: %w", err)
		}
		c.ZooKeeper.Servers = servers
	}
	if f.Root != "" {
		if !path.IsAbs(f.Root) || path.Clean(f.Root) != f.Root {
			return usage("--root: %q is no path in ZooKeeper, such as /understudy", f.Root)
		}
		c.ZooKeeper.Root = f.Root
	}
	if len(c.ZooKeeper.Servers) == 0 {
		return usage("which ZooKeeper? say --zk host:port[,host:port...], set UNDERSTUDY_ZK, or name a file with --config%s", absent())
	}
	return nil
}

// absent explains why the default file was not taken.
func absent() string {
	if _, err := os.Stat(config.DefaultFile); errors.Is(err, fs.ErrNotExist) {
		return " (" + config.DefaultFile + " does not exist)"
	}
	return ""
}

// cluster is a config that says how to reach the cluster: of the flags, or where they say nothing of the default file.
func (f *clusterFlags) cluster() (*config.Config, error) {
	from := *f
	if f.ZK == "" && f.Config == "" {
		if _, err := os.Stat(config.DefaultFile); !errors.Is(err, fs.ErrNotExist) {
			from.Config = config.DefaultFile
		}
	}
	return from.load()
}

// election makes of the flags what is needed to talk to the cluster.
func (f *clusterFlags) election() (election.Config, error) {
	c, err := f.cluster()
	if err != nil {
		return election.Config{}, err
	}
	auth, err := credentials(c)
	if err != nil {
		return election.Config{}, err
	}
	return client(c, auth), nil
}

// client is how the cluster is reached by those who stand for no election.
func client(c *config.Config, auth *election.Auth) election.Config {
	return election.Config{
		Servers: servers(c), Root: c.ZooKeeper.Root, Timeout: max(c.ZooKeeper.SessionTimeout, 2*time.Second), Auth: auth,
		TLS: secured(c), Logger: hclog.NewNullLogger(),
	}
}

func servers(c *config.Config) []string {
	list := make([]string, 0, len(c.ZooKeeper.Servers))
	for _, s := range c.ZooKeeper.Servers {
		list = append(list, string(s))
	}
	return list
}

// secured is how the servers are spoken to.
func secured(c *config.Config) *election.TLS {
	if c.ZooKeeper.TLS == nil {
		return nil
	}
	t := election.TLS(*c.ZooKeeper.TLS)
	return &t
}

// credentials reads the secret that the config names.
func credentials(c *config.Config) (*election.Auth, error) {
	if c.ZooKeeper.Auth == nil {
		return nil, nil
	}
	auth, _, err := election.ReadAuth(c.ZooKeeper.Auth.Scheme, c.ZooKeeper.Auth.File)
	if err != nil {
		return nil, fmt.Errorf("zookeeper.auth.file: %w", err)
	}
	return auth, nil
}
