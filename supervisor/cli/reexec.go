package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/handoff"
	"understudy/supervisor/handoff/ask"
)

func reexecCommand() *cobra.Command {
	var pid int
	var all bool
	var timeout time.Duration
	var binary string
	cmd := &cobra.Command{
		Use:   "reexec [--pid PID | --all]",
		Short: "Have a running supervisor go on as the version installed now",
		Long: "Has the supervisor of this machine become the binary that is in its place now, as the same process. The programs\n" +
			"that it runs do not notice. The new binary is tried before: if it does not start, does not know what it is to go\n" +
			"on with, or refuses the config, everything stays as it is, and the exit code is 1. SIGUSR2 to the supervisor does\n" +
			"the same, without waiting: systemctl kill -s USR2 --kill-whom=main understudy\n\n" +
			"Without --pid it is looked for among the processes of the user who calls: anybody's may look like one. What --pid\n" +
			"names may be another user's; its arguments are then tried as that user.",
		Example: "  understudy reexec --all",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, errTimeout)
			defer cancel()
			if cmd.Flags().Changed("pid") && pid <= 1 {
				return usage("--pid %d: that is no supervisor's", pid)
			}
			if binary == "" {
				own, err := os.Executable()
				if err != nil {
					return err
				}
				binary = own
			}
			found, err := ask.Running(binary, pid)
			switch {
			case err != nil:
				return err
			case len(found) == 0 && pid != 0:
				return fmt.Errorf("process %d is no supervisor that was started as %s: --binary says where it was started from", pid, binary)
			case len(found) == 0:
				return fmt.Errorf("no supervisor of this user runs here that was started as %s: --binary says where it was started from, --pid names another user's", binary)
			case len(found) > 1 && !all:
				return usage("several supervisors run here, as processes %v: say --pid PID or --all", found)
			}
			var errs []error
			named := pid != 0
			for _, pid := range found {
				if err := ask.Reexec(ctx, binary, pid, named); err != nil {
					errs = append(errs, fmt.Errorf("supervisor %d: %w", pid, err))
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "supervisor %d goes on as the installed version\n", pid)
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().IntVar(&pid, "pid", 0, "the supervisor's process id (default: the one that runs)")
	cmd.Flags().BoolVar(&all, "all", false, "all supervisors of this machine")
	cmd.Flags().StringVar(&binary, "binary", "", "where the supervisor was started from (default: where this command was)")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait for it")
	return cmd
}

// goesOnCommand is what handoff.Try asks.
func goesOnCommand() *cobra.Command {
	return &cobra.Command{
		Use: handoff.GoesOn + " run ...", Hidden: true, DisableFlagParsing: true,
		Short: "Tell whether this version goes on with what a running supervisor hands over",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] != "run" {
				return usage("what goes on is `run ...`")
			}
			var p handoff.Offer
			again := runCommandWith(func(f *runFlags, cmd *cobra.Command, args []string) error {
				c, err := f.load(cmd, args, false)
				if err == nil {
					p = handoff.OfferOf(c.Node, c.ZooKeeper.Root, servers(c.Config))
				}
				return err
			})
			again.SetArgs(args[1:])
			again.SilenceErrors, again.SilenceUsage = true, true
			if err := again.ExecuteContext(cmd.Context()); err != nil {
				return err
			}
			if p.Handovers == nil {
				return errors.New("nothing would be run")
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(p)
		},
	}
}
