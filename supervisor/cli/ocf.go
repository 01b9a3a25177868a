package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/ocf"
)

// ocfCommand has what a service with `ocf:` runs (config.Service.Members).
func ocfCommand() *cobra.Command {
	var r ocf.Resource
	var action ocf.Action
	cmd := &cobra.Command{
		Use: "ocf", Hidden: true, Args: subcommand,
		Short: "For services with `ocf:`: run an OCF resource agent",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	add := func(word, does, short string, run func(ctx context.Context) error) *cobra.Command {
		one := &cobra.Command{
			Use: word + " PROVIDER:NAME [PARAMETER=VALUE...]", Short: short,
			Example: "  understudy ocf " + word + " heartbeat:Filesystem --name fs device=/dev/vdb directory=/srv fstype=ext4",
			Args: func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return usage("%s takes an agent (see `%s --help`)", cmd.Name(), cmd.CommandPath())
				}
				return nil
			},
			RunE: func(cmd *cobra.Command, args []string) error {
				if why := ocf.NameFault(args[0]); why != "" {
					return usage("%s", why)
				}
				r.Agent, r.Params, action.Name = args[0], map[string]string{}, does
				for _, word := range args[1:] {
					name, value, ok := strings.Cut(word, "=")
					if !ok {
						return usage("%q is not PARAMETER=VALUE", word)
					}
					r.Params[name] = value
				}
				ctx, stop := untilStopped(cmd.Context())
				defer stop()
				return run(ctx)
			},
		}
		one.Flags().StringVar(&r.Name, "name", "understudy", "the resource's name")
		one.Flags().DurationVar(&action.Timeout, "timeout", 0, "how long the action may take (default: no limit)")
		cmd.AddCommand(one)
		return one
	}
	add("start", "start", "Run the agent's start action", func(ctx context.Context) error { return r.Run(ctx, action) })
	add("stop", "stop", "Run the agent's stop action", func(ctx context.Context) error { return r.Run(ctx, action) })
	add("stopped", "monitor", "Succeed if the agent's monitor action says that it is not running", func(ctx context.Context) error {
		err := r.Run(ctx, action)
		if failed, ok := errors.AsType[*ocf.Failed](err); ok && failed.Code == ocf.NotRunning {
			return nil
		}
		return cmp.Or(err, errors.New("it is running"))
	})
	watch := add("watch", "monitor", "Run the agent's monitor action again and again until it fails", func(ctx context.Context) error {
		return r.Watch(ctx, action, sayReady, func(line string) { fmt.Fprintln(os.Stderr, "understudy:", line) })
	})
	watch.Flags().DurationVar(&action.Interval, "interval", 10*time.Second, "the pause between two of them")
	return cmd
}
