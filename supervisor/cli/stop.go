package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

// stopped is the outcome of `stop` and `start`, as JSON has it.
type stopped struct {
	Service string `json:"service"`
	Stopped bool   `json:"stopped"`
	Changed bool   `json:"changed"`
	Active  string `json:"active"`
}

func stopCommand() *cobra.Command {
	return holdCommand("stop", true, "Stop a service on all nodes, until it is started again",
		"The active node stops its program, and no node starts it until `understudy start SERVICE`. That stays so when supervisors and\n"+
			"hosts are restarted. A replicated service cannot be stopped so, because a copy of it runs on every node.")
}

func startCommand() *cobra.Command {
	return holdCommand("start", false, "Start a service again that was stopped",
		"The node that is preferred, or the first that can, starts it.")
}

// keptDown is why no node runs a service that is not stopped, with the command that helps; "": one does, or that is not known.
func keptDown(ctx context.Context, c *control.Cluster, name string) string {
	s, err := c.Status(ctx, name)
	if err != nil || s.Services[0].Active != "" || len(s.Services[0].Problems) == 0 {
		return ""
	}
	why := s.Services[0].Problems[0]
	words := strings.TrimSpace(why.What + " " + why.Hint)
	if len(why.Do.Words) > 0 {
		words += " `" + strings.Join(why.Do.Words, " ") + "`"
	}
	return " " + words
}

func holdCommand(verb string, stop bool, short, long string) *cobra.Command {
	var v visit
	var why string
	cmd := &cobra.Command{
		Use: verb + " SERVICE", Short: short, Long: long,
		Example: "  understudy " + verb + " db --zk zk1,zk2,zk3",
		Args:    exactArgs(1, "one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(why) > election.LongestReason {
				return usage("--reason is %d bytes long: at most %d are allowed", len(why), election.LongestReason)
			}
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				name := args[0]
				changed, err := c.Stop(ctx, name, stop, operator(), why)
				if err != nil {
					return err
				}
				if !changed && !stop {
					return v.tell(stopped{Service: name}, "Nothing to do: %s is not stopped.%s\n", name, keptDown(ctx, c, name))
				}
				s, err := c.WaitCarriedOut(ctx, name, stop)
				if err != nil {
					return err
				}
				told := fmt.Sprintf("Stopped: %s.\n", name)
				switch {
				case stop && changed && s.Before != "":
					told = fmt.Sprintf("Stopped: %s. It was %s; `understudy start %s` restores that.\n",
						name, s.Before, printable.Word(name))
				case !stop && cmp.Or(s.Before, s.Order) != "":
					told = fmt.Sprintf("Started: %s is active on %s. It is %s, as before the stop.\n",
						name, s.Active, cmp.Or(s.Before, s.Order))
				case !stop:
					told = fmt.Sprintf("Started: %s is active on %s.\n", name, s.Active)
				case !changed:
					told = fmt.Sprintf("Nothing to do: %s is stopped already.\n", name)
				}
				return v.tell(stopped{name, stop, changed, s.Active}, "%s", told)
			})
		},
	}
	v.register(cmd, "the outcome")
	v.patient(cmd)
	cmd.ValidArgsFunction = v.services
	if stop {
		cmd.Flags().StringVar(&why, "reason", "", "`text` that other operators see as the reason")
	}
	return cmd
}
