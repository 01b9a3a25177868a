// Package cli is the command line.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/supervisor/config"
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
	root := &cobra.Command{
		Use:   "understudy",
		Short: "One program, running on exactly one host, whatever breaks",
		Long: "Understudy makes any program highly available: it runs on one host of several, ZooKeeper decides on which,\n" +
			"and when that host, its network or the program dies, another one has taken over.",
		Example: "  understudy demo\n" +
			"  understudy run --zk zk1,zk2,zk3 --service db -- /usr/bin/my-server --port 80\n" +
			"  understudy status --zk zk1,zk2,zk3",
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%w (see `%s --help`)", err, cmd.CommandPath())
	})
	root.AddCommand(runCommand(version), statusCommand(), historyCommand(), fenceCommand(), devCommand(), demoCommand(),
		versionCommand(version))
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetArgs(args)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return exitCode(root.ExecuteContext(ctx))
}

func exitCode(err error) int {
	var status exitStatus
	var wrong usageError
	var faults config.Faults
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintln(os.Stderr, "understudy:", err)
	switch {
	case errors.As(err, &wrong), errors.As(err, &faults), strings.HasPrefix(err.Error(), "unknown command"):
		return exitUsage
	case errors.Is(err, errTimeout):
		return exitLate
	}
	return exitFailed
}

// exactArgs is cobra's, as a usage error.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %s (see `%s --help`)", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

// atMostOne is for commands that take a service or none.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("%s takes one service at most (see `%s --help`)", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// clusterFlags say which cluster a command is about.
type clusterFlags struct{ ZK, Root, Config string }

func (f *clusterFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.ZK, "zk", os.Getenv("UNDERSTUDY_ZK"), "ZooKeeper servers, host:port, comma-separated (env UNDERSTUDY_ZK)")
	cmd.Flags().StringVar(&f.Root, "root", "", "path in ZooKeeper below which everything is kept (default /understudy)")
	cmd.Flags().StringVar(&f.Config, "config", "", "take servers, root and credentials from a config file")
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
	if f.ZK != "" && (f.Config == "" || f.ZK != os.Getenv("UNDERSTUDY_ZK")) {
		servers, err := config.ParseServers(f.ZK)
		if err != nil {
			return nil, usage("--zk: %w", err)
		}
		c.ZooKeeper.Servers = servers
	}
	if f.Root != "" {
		c.ZooKeeper.Root = f.Root
	}
	if len(c.ZooKeeper.Servers) == 0 {
		return nil, usage("which ZooKeeper? say --zk host:port[,host:port...], set UNDERSTUDY_ZK, or name a file with --config")
	}
	return c, nil
}

// election makes of the flags what is needed to talk to the cluster.
func (f *clusterFlags) election() (election.Config, error) {
	c, err := f.load()
	if err != nil {
		return election.Config{}, err
	}
	auth, err := credentials(c, hclog.NewNullLogger())
	if err != nil {
		return election.Config{}, err
	}
	return election.Config{
		Servers: servers(c), Root: c.ZooKeeper.Root, Timeout: max(c.ZooKeeper.SessionTimeout, 2*time.Second), Auth: auth,
		Logger: hclog.NewNullLogger(),
	}, nil
}

func servers(c *config.Config) []string {
	list := make([]string, 0, len(c.ZooKeeper.Servers))
	for _, s := range c.ZooKeeper.Servers {
		list = append(list, string(s))
	}
	return list
}

// credentials reads the secret that the config names.
func credentials(c *config.Config, log hclog.Logger) (*election.Auth, error) {
	if c.ZooKeeper.Auth == nil {
		return nil, nil
	}
	secret, warning, err := config.ReadSecret(c.ZooKeeper.Auth.File)
	if err != nil {
		return nil, fmt.Errorf("zookeeper.auth.file: %w", err)
	}
	if warning != "" {
		log.Warn("the secret file can be read by others", "warning", warning)
	}
	return &election.Auth{Scheme: c.ZooKeeper.Auth.Scheme, Secret: []byte(secret)}, nil
}
