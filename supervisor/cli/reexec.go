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
		Short: "Make a running supervisor switch to the installed version",
		Long: "The supervisor of this machine executes the binary that is installed now, as the same process. The programs that it\n" +
			"runs do not notice. It tries the new binary first: if that does not start, cannot read the supervisor's state, or\n" +
			"refuses the config, everything stays as it is, and the exit code is 1. SIGUSR2 to the supervisor does the same,\n" +
			"without waiting: systemctl kill -s USR2 --kill-whom=main understudy\n\n" +
			"Without --pid the command looks for a supervisor among your own processes only, because anybody's process may look\n" +
			"like one. --pid may name another user's; the command then tries the new binary as that user.",
		Example: "  understudy reexec --all",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, errTimeout)
			defer cancel()
			if cmd.Flags().Changed("pid") && pid <= 1 {
				return usage("--pid %d: that process is not a supervisor", pid)
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
	cmd.Flags().StringVar(&binary, "binary", "", "the `path` that the supervisor was started from (default: this command's)")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait for it")
	return cmd
}

// goesOnCommand is what handoff.Try asks.
func goesOnCommand() *cobra.Command {
	return &cobra.Command{
		Use: handoff.GoesOn + " run ...", Hidden: true, DisableFlagParsing: true,
		Short: "Check whether this version can continue from a running supervisor's state",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] != "run" {
				return usage("only `run ...` can continue")
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
