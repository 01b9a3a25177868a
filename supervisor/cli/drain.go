package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

// drained is the outcome of `drain` and `undrain`, as JSON has it.
type drained struct {
	Node     string              `json:"node"`
	Drained  bool                `json:"drained"`
	Changed  bool                `json:"changed"`
	Services []control.Departure `json:"services,omitempty"` // that were active there
}

func drainCommand() *cobra.Command {
	var v visit
	var wait bool
	d := control.Draining{By: operator()}
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Move all services away from a node, and keep it out (maintenance)",
		Long: "The node moves its services to other nodes, as in a switchover, and takes none until `understudy undrain NODE`. That\n" +
			"stays so when its supervisor, or its host, is restarted. " +
			"The drain is refused while a service there is paused, or if no other\n" +
			"node can take one (--force drains all the same).",
		Example: "  understudy drain db-1 --wait --reason disks --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.Node = args[0]
			if len(d.Why) > election.LongestReason {
				return usage("--reason is %d bytes long: at most %d are allowed", len(d.Why), election.LongestReason)
			}
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				changed, leaving, err := c.Drain(ctx, d)
				if err == nil && wait {
					leaving, err = c.Empty(ctx, d.Node, leaving)
				}
				if err != nil {
					return err
				}
				return v.tell(drained{d.Node, true, changed, leaving}, "%s", tellDrain(d.Node, changed, wait, leaving))
			})
		},
	}
	v.register(cmd, "the outcome")
	v.patient(cmd)
	cmd.ValidArgsFunction = v.nodes
	flags := cmd.Flags()
	flags.BoolVar(&wait, "wait", false, "wait until nothing is active there")
	flags.BoolVar(&d.Force, "force", false, "even if no other node can take a service, which then stops, or if the node is unknown")
	flags.StringVar(&d.Why, "reason", "", "`text` that other operators see as the reason")
	return cmd
}

// tellDrain puts the outcome into words.
func tellDrain(node string, changed, waited bool, leaving []control.Departure) string {
	var b strings.Builder
	if changed {
		fmt.Fprintf(&b, "Drained: %s takes no service until `understudy undrain %s`.\n", node, node)
	} else {
		fmt.Fprintf(&b, "Nothing to do: %s is drained already.\n", node)
	}
	for _, s := range leaving {
		switch {
		case waited:
			fmt.Fprintf(&b, "  %s is active on %s now.\n", s.Service, cmp.Or(s.To, "no node"))
		case changed && s.Stops != "":
			fmt.Fprintf(&b, "  %s STOPS: no other node can take it (%s).\n", s.Service, s.Stops)
		case changed && s.Stays:
			fmt.Fprintf(&b, "  %s stays there, because it is paused.\n", s.Service)
		case changed:
			fmt.Fprintf(&b, "  %s moves to another node.\n", s.Service)
		default:
			fmt.Fprintf(&b, "  %s is still active there (see `understudy status %s`).\n", s.Service, printable.Word(s.Service))
		}
	}
	return b.String()
}

// drained names the nodes that are kept out of all services.
func (to paper) drained(s control.Status) (lines []string) {
	for _, d := range s.Drained {
		text := d.Node + " is " + d.Words + "."
		if !s.Connected(d.Node) {
			text = d.Node + ", which is not connected, is " + d.Words + "."
		}
		do := d.Undrain()
		if len(do.Words) > 0 {
			text += " To let it take services again:"
		}
		lines = append(lines, to.paintAll(yellow, note(to.width, text))...)
		if len(do.Words) > 0 {
			lines = append(lines, command(to.width, withFlags(do, to.flags)...)...)
		}
	}
	return lines
}

func undrainCommand() *cobra.Command {
	var v visit
	cmd := &cobra.Command{
		Use:   "undrain NODE",
		Short: "Let a drained node take services again",
		Long: "The node can take its services again. It takes one only when the active node fails, or gives it up because this one is\n" +
			"preferred (failback). The command waits until the node has heard of it, for 3 seconds at most.",
		Example: "  understudy undrain db-1 --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				changed, err := c.Undrain(ctx, args[0], operator())
				if err != nil {
					return err
				}
				words := "Nothing to do: %s is not drained.\n"
				if changed {
					words = "Done: %s stands for its services again.\n"
					is := func(n control.NodeStatus) bool { return n.Node == args[0] }
					if s, err := c.Status(ctx); err == nil && !slices.ContainsFunc(s.Nodes, is) {
						words = "Done: %s is not drained any more. It is not connected.\n"
					}
				}
				return v.tell(drained{Node: args[0], Changed: changed}, words, args[0])
			})
		},
	}
	v.register(cmd, "the outcome")
	cmd.ValidArgsFunction = v.nodes
	return cmd
}

// forgotten is the outcome of `forget`, as JSON has it.
type forgotten struct {
	Name string `json:"name"`
	What string `json:"what"` // service or node
	Done bool   `json:"done"`
}

func forgetCommand() *cobra.Command {
	var v visit
	cmd := &cobra.Command{
		Use:   "forget SERVICE | NODE",
		Short: "Remove what is in no config any more from ZooKeeper",
		Long: "Removes the history and orders of a service that no node has any more, so that `status` does not show it, " +
			"or the order that\n" +
			"drains a node that does not exist any more. The other nodes no longer wait for what that " +
			"node's copies of replicated services\n" +
			"would report. It is refused while a node has the service, or its program may still run, and while the node is connected.",
		Example: "  understudy forget olddb --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one service or node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				what, err := c.Forget(ctx, args[0])
				if err != nil {
					return err
				}
				return v.tell(forgotten{args[0], what, true}, "Done: the %s %s is forgotten.\n", what, args[0])
			})
		},
	}
	v.register(cmd, "the outcome")
	cmd.ValidArgsFunction = v.services
	return cmd
}
