package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"understudy/supervisor/control"
)

func fenceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "fence",
		Short:   "Mend a fencing that is stuck",
		Example: "  understudy fence confirm db --node db-1",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(confirmCommand())
	return cmd
}

func confirmCommand() *cobra.Command {
	var v visit
	var node string
	cmd := &cobra.Command{
		Use:   "confirm SERVICE --node NODE",
		Short: "Swear that the child of a node is dead, so that another one may start",
		Long: "You swear that the child of SERVICE on NODE is dead: you have seen the machine without power, or the process gone.\n" +
			"NODE's breadcrumb is then deleted, and another node may become active at once. If you are wrong, two children run.\n" +
			"What `understudy status` shows under \"fencing\" is what can be confirmed; a node that is active cannot.",
		Example: "  understudy fence confirm db --node db-1 --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			service := args[0]
			if node == "" {
				return usage("of which node is the child dead? say --node NODE")
			}
			return v.within(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				result, err := c.Confirm(ctx, service, node)
				if err != nil {
					return err
				}
				if result.Done {
					fmt.Printf("Confirmed: the child of %s on %s is taken for dead, its breadcrumb is deleted.\n", service, node)
				} else {
					fmt.Printf("Nothing to confirm: %s.\n", result.Why)
				}
				return nil
			})
		},
	}
	v.register(cmd, "")
	cmd.Flags().StringVar(&node, "node", "", "whose child is dead")
	return cmd
}
