package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/config"
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
	code := func(err error) int {
		if ocf.Unfit(err) {
			return config.ExitUnfit
		}
		return exitFailed
	}
	add("start", "start", "Run the agent's start action", func(ctx context.Context) error {
		nothing, err := r.Start(ctx, action.Timeout)
		if nothing {
			return failed(ctx, err, config.ExitNothing)
		}
		return failed(ctx, err, code(err))
	})
	add("stop", "stop", "Run the agent's stop action", func(ctx context.Context) error { return r.Run(ctx, action) })
	add("stopped", "monitor", "Succeed if the agent's monitor action says that it is not running", func(ctx context.Context) error {
		return r.Stopped(ctx, action)
	})
	validate := false
	probe := add("probe", "monitor", "Fail if the agent says that this host cannot run it", func(ctx context.Context) error {
		return failed(ctx, r.Probe(ctx, action.Timeout, validate), config.ExitUnfit)
	})
	probe.Flags().BoolVar(&validate, "validate", false, "ask its validate-all action, too")
	watch := add("watch", "monitor", "Run the agent's monitor action again and again until it fails", func(ctx context.Context) error {
		err := r.Watch(ctx, action, sayReady)
		return failed(ctx, err, code(err))
	})
	watch.Flags().DurationVar(&action.Interval, "interval", 10*time.Second, "the pause between two of them")
	return cmd
}
