package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"understudy/supervisor/control"
)

func restartCommand() *cobra.Command {
	return errandCommand("restart", "Restart the program on its node",
		"The lock is kept, so no other node takes over while it restarts. "+
			"The primary of a replicated service gives it back, and is promoted\n"+
			"again if its copy has all data. --node restarts the copy on another node.",
		"has been restarted", (*control.Cluster).Restart)
}

func reloadCommand() *cobra.Command {
	return errandCommand("reload", "Send the program its reload signal",
		"The signal is reload_signal of its config, SIGHUP by default. "+
			"If it ends the program within 1 s, or reload_check fails before it,\n"+
			"the exit code is 1. --node sends it to the copy of a replicated service on another node.",
		"was sent its reload signal", (*control.Cluster).Reload)
}

func errandCommand(verb, short, long, done string, do func(*control.Cluster, context.Context, string, string) error) *cobra.Command {
	var v visit
	var node string
	cmd := &cobra.Command{
		Use:     verb + " SERVICE [--node NODE]",
		Short:   short,
		Long:    long,
		Example: "  understudy " + verb + " db --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if node != "" {
				return v.orderCopy(cmd.Context(), control.CopyRequest{Service: args[0], Node: node, Do: verb}, done)
			}
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				if err := do(c, ctx, args[0], operator()); err != nil {
					return aborted(cmd.Context(), err)
				}
				return v.tell(errand{Service: args[0], Done: true}, "Done: %s %s.\n", args[0], done)
			})
		},
	}
	v.registerErrand(cmd)
	cmd.Flags().StringVar(&node, "node", "", "whose program, of a replicated or warm service: that `node`'s (default: the active one's)")
	v.completeNodes(cmd, "node")
	return cmd
}

func recloneCommand() *cobra.Command {
	var v visit
	var node string
	var yes, force bool
	cmd := &cobra.Command{
		Use:   "reclone SERVICE --node NODE",
		Short: "Make a copy of a replicated service again from the primary",
		Long: "NODE's program is stopped, and its `reclone` command replaces its data by the primary's. " +
			"Then it starts, and follows again.\n" +
			"The command returns when the copy has the primary's data. " +
			"If it takes longer than --timeout, a clone that has begun continues.\n" +
			"On a terminal you type the node's name again, unless you give --yes.",
		Example: "  understudy reclone db --node db-2 --timeout 1h --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if node == "" {
				return usage("--node is missing: name the node whose copy is to be replaced")
			}
			if !yes && isTerminal(os.Stdin) {
				words := fmt.Sprintf("The data of the copy of %s on %s is deleted, and replaced by the primary's. "+
					"Type the node's name to confirm that: ", args[0], node)
				if err := retyped(cmd.Context(), words, node); err != nil {
					return err
				}
			}
			r := control.CopyRequest{Service: args[0], Node: node, Do: "reclone", Force: force}
			return v.orderCopy(cmd.Context(), r, "was cloned from the primary")
		},
	}
	v.registerErrand(cmd)
	cmd.Flags().StringVar(&node, "node", "", "the `node` whose copy is replaced")
	v.completeNodes(cmd, "node")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for the node's name on a terminal")
	cmd.Flags().BoolVar(&force, "force", false, "even if no other copy has the primary's data")
	return cmd
}

func (v *visit) registerErrand(cmd *cobra.Command) {
	v.register(cmd, "the outcome")
	cmd.ValidArgsFunction = v.services
	v.patient(cmd)
}

// orderCopy has a node do something with its copy of a replicated service.
func (v *visit) orderCopy(asked context.Context, r control.CopyRequest, done string) error {
	r.By = operator()
	return v.visits(asked, func(ctx context.Context, c *control.Cluster) error {
		if err := c.OrderCopy(ctx, r); err != nil {
			return aborted(asked, err)
		}
		return v.tell(errand{r.Service, r.Node, true}, "Done: %s on %s %s.\n", r.Service, r.Node, done)
	})
}
