package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"understudy/supervisor/child/inside"
	"understudy/supervisor/config"
	"understudy/supervisor/mount"
)

var errHidden = errors.New("programs run in PID namespaces here, which hide mounts from the host and from one another: " +
	"write contain: cgroup")

// mountCommand has what a service with `mount:` runs (config.Service.Members).
func mountCommand() *cobra.Command {
	var m mount.Mount
	cmd := &cobra.Command{
		Use: "mount", Hidden: true, Args: subcommand,
		Short: "For services with `mount:`: mount a file system, unmount it",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	add := func(word, short string, hidden int, run func(ctx context.Context) error) {
		one := &cobra.Command{
			Use: word + " DIRECTORY", Short: short, Args: exactArgs(1, "one directory"),
			Example: "  understudy mount " + word + " --device /dev/vdb --type ext4 /srv/db",
			RunE: func(cmd *cobra.Command, args []string) error {
				m.Directory = args[0]
				if m.Device == "" {
					return usage("--device is missing, such as --device /dev/vdb")
				}
				ctx, stop := untilStopped(cmd.Context())
				defer stop()
				if inside.HasOwnMounts() { // P2: nor does their table say what the host has mounted
					return failed(ctx, errHidden, hidden)
				}
				return run(ctx)
			},
		}
		one.Flags().StringVar(&m.Device, "device", "", "what to mount")
		one.Flags().StringVar(&m.Type, "type", "", "the type of the file system")
		one.Flags().StringVar(&m.Options, "options", "", "options, with commas")
		cmd.AddCommand(one)
	}
	add("up", "Mount it, unless something else is mounted there", config.ExitNothing, func(ctx context.Context) error {
		nothing, err := m.Up(ctx)
		if nothing {
			return failed(ctx, err, config.ExitNothing)
		}
		return failed(ctx, err, config.ExitUnfit)
	})
	add("down", "Unmount it, if it is mounted", exitFailed, func(context.Context) error { return m.Down() })
	add("watch", "Fail when it is no longer mounted", exitFailed, func(ctx context.Context) error {
		return failed(ctx, m.Watch(ctx, sayReady), exitFailed)
	})
	add("probe", "Fail if this host could not mount it", config.ExitUnfit, func(ctx context.Context) error {
		return failed(ctx, m.Fit(), config.ExitUnfit)
	})
	return cmd
}
