package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

func switchoverCommand() *cobra.Command {
	var v visit
	var to string
	var force, dry bool
	cmd := &cobra.Command{
		Use:   "switchover SERVICE [--to NODE]",
		Short: "Hand a service over to another node, as planned",
		Long: "The active node stops its child and gives the lock back once that is proved dead; then the other node starts its own.\n" +
			"Waits until it runs there. If you interrupt it, or it takes too long, it withdraws the order, unless a node has\n" +
			"begun to follow it; in any case the service ends up running somewhere.",
		Example: "  understudy switchover db --to db-2 --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h := control.Handover{Service: args[0], To: to, Force: force, By: operator()}
			h.Tell = func(step string) { fmt.Println("  " + printable.Text(step)) }
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				if dry {
					s, err := c.Ready(ctx, h)
					if err == nil {
						fmt.Printf("%s would be handed over from %s to %s.\n", h.Service, printable.Text(s.Active), orFirst(to))
					}
					return err
				}
				began := time.Now()
				got, err := c.Switchover(ctx, h)
				if err != nil {
					return aborted(cmd.Context(), err)
				}
				fmt.Printf("Done: %s is active on %s, after %s.\n", h.Service, printable.Text(got), brief(time.Since(began)))
				return nil
			})
		},
	}
	v.register(cmd, "")
	cmd.ValidArgsFunction = v.services
	v.patient(cmd)
	cmd.Flags().StringVar(&to, "to", "", "which `node` (default: the first that can)")
	complete(cmd, "to", v.members(func(s control.Service, m control.Member) bool { return m.Node != s.Active }))
	cmd.Flags().BoolVar(&force, "force", false, "even if the target is unwell, or backs off after a failure")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would happen, and order nothing")
	return cmd
}

func orFirst(node string) string {
	if node == "" {
		return "the first node that can"
	}
	return node
}

// aborted tells that it was the operator who did not wait.
func aborted(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("interrupted; the order is withdrawn unless a node has begun to follow it: see `understudy status` (%w)", err)
	}
	return err
}

func restartCommand() *cobra.Command {
	return errandCommand("restart", "Restart the active child on the same node", "The lock is kept: no other node takes over meanwhile.",
		"has been restarted", (*control.Cluster).Restart)
}

func reloadCommand() *cobra.Command {
	return errandCommand("reload", "Send the active child its reload signal", "The signal is reload_signal of its config, SIGHUP by default.",
		"was sent its reload signal", (*control.Cluster).Reload)
}

func errandCommand(verb, short, long, done string, do func(*control.Cluster, context.Context, string, string) error) *cobra.Command {
	var v visit
	cmd := &cobra.Command{
		Use:     verb + " SERVICE",
		Short:   short,
		Long:    long,
		Example: "  understudy " + verb + " db --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				if err := do(c, ctx, args[0], operator()); err != nil {
					return aborted(cmd.Context(), err)
				}
				fmt.Printf("Done: %s %s.\n", args[0], done)
				return nil
			})
		},
	}
	v.register(cmd, "")
	cmd.ValidArgsFunction = v.services
	v.patient(cmd)
	return cmd
}
