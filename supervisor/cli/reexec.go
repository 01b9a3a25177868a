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
)

func reexecCommand() *cobra.Command {
	var pid int
	var timeout time.Duration
	var binary string
	cmd := &cobra.Command{
		Use:   "reexec [--pid PID]",
		Short: "Make running supervisors switch to the installed version",
		Long: "Your supervisors on this machine execute the binary that is installed now, each as the same process. The programs that\n" +
			"they run do not notice. Each tries the new binary first: if that does not start, cannot read the supervisor's state, or\n" +
			"refuses the config, everything stays as it is, and the exit code is 1. SIGUSR2 to the supervisor does the same,\n" +
			"without waiting: systemctl kill -s USR2 --kill-whom=main understudy\n\n" +
			"Without --pid the command takes your own processes only, because a process of any user may look like a supervisor. To\n" +
			"another user's supervisor that --pid names it sends SIGUSR2, and does not wait.",
		Example: "  understudy reexec",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return usage("--timeout must be more than zero")
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, errTimeout)
			defer cancel()
			if cmd.Flags().Changed("pid") && pid <= 1 {
				return usage("--pid %d: %w", pid, handoff.ErrNoSupervisor)
			}
			if binary == "" {
				own, err := os.Executable()
				if err != nil {
					return err
				}
				binary = own
			}
			found := []int{pid}
			if pid == 0 {
				var err error
				if found, err = handoff.Supervisors(binary); err != nil {
					return err
				}
			}
			if len(found) == 0 {
				return fmt.Errorf("no supervisor of this user runs here that was started as %s: use --binary PATH or --pid PID", binary)
			}
			var errs []error
			for _, pid := range found {
				became, err := handoff.Ask(ctx, binary, pid)
				switch {
				case errors.Is(err, handoff.ErrNoSupervisor) && cmd.Flags().Changed("pid"):
					errs = append(errs, fmt.Errorf("--pid %d: %w", pid, err))
				case err != nil:
					errs = append(errs, fmt.Errorf("supervisor %d: %w", pid, err))
				case became:
					fmt.Fprintf(cmd.OutOrStdout(), "supervisor %d is the installed version now\n", pid)
				default:
					fmt.Fprintf(cmd.OutOrStdout(), "supervisor %d is another user's and was sent SIGUSR2: its log gives the result\n", pid)
				}
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().IntVar(&pid, "pid", 0, "the supervisor's process id (default: all of yours)")
	cmd.Flags().StringVar(&binary, "binary", "", "the `path` that the supervisor was started from (default: this command's)")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait")
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
				c, err := f.load(cmd, args)
				if err != nil {
					return err
				}
				p = handoff.OfferOf(c.Node, c.ZooKeeper.Root, c.ZooKeeper.Name, servers(c.Config))
				return nil
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
