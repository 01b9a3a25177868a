package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"regexp"

	"github.com/spf13/cobra"

	"understudy/election"
	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

func pauseCommand() *cobra.Command {
	return orderCommand("pause", "Turn automatic takeovers off (maintenance)",
		"No node becomes active from now on. A running program keeps running: its node restarts it when it fails, and still\n"+
			"kills it when the lock is lost. But a primary of a replicated service that fails is not promoted again, "+
			"and no other copy is,\n"+
			"until the pause ends, as by `understudy resume`. A stop keeps the pause for the start.\n"+
			"Refused while a switchover is in progress, and for a service that is stopped.", true, "Paused", "is paused already")
}

func resumeCommand() *cobra.Command {
	return orderCommand("resume", "Turn automatic takeovers on again",
		"Nodes can become active again. Where no node is active, one does so at once.", false, "Resumed", "is not paused")
}

// paused is the outcome for one service, as JSON has it.
type paused struct {
	Service string `json:"service"`
	Paused  bool   `json:"paused"`
	Changed bool   `json:"changed"`
}

func orderCommand(verb, short, long string, pausing bool, done, idle string) *cobra.Command {
	var v visit
	var all bool
	var why string
	cmd := &cobra.Command{
		Use:     verb + " SERVICE | --all",
		Short:   short,
		Long:    long,
		Example: "  understudy " + verb + " db --zk zk1,zk2,zk3",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return usage("give a service or --all, not both (see `%s --help`)", cmd.CommandPath())
			case !all && len(args) != 1:
				return usage("%s takes one service, or --all (see `%s --help`)", verb, cmd.CommandPath())
			}
			if len(why) > election.LongestReason {
				return usage("--reason is %d bytes long: at most %d are allowed", len(why), election.LongestReason)
			}
			return v.visits(cmd.Context(), func(ctx context.Context, c *control.Cluster) error {
				names, err := c.Services(ctx, args...)
				if err != nil {
					return err
				}
				if len(names) == 0 && !v.json {
					fmt.Fprintln(stdout, "Nothing to do: there is no service below "+c.Where()+".")
				}
				outcome := []paused{}
				var refused []error // the others are paused all the same
				for _, name := range names {
					changed, err := c.Pause(ctx, name, pausing, operator(), why)
					switch {
					case errors.Is(err, control.ErrRefused):
						refused = append(refused, err)
					case err != nil:
						return errors.Join(append(refused, err)...)
					case v.json:
						outcome = append(outcome, paused{name, pausing, changed})
					case changed:
						fmt.Fprintf(stdout, "%s: %s.\n", done, printable.Text(name))
					case pausing && why != "":
						s, err := c.Status(ctx, name)
						if err != nil {
							return err
						}
						fmt.Fprintf(stdout, "Nothing to do: %s %s, and the first reason stands: %s.\n", printable.Text(name), idle,
							printable.Text(s.Services[0].Order))
					default:
						fmt.Fprintf(stdout, "Nothing to do: %s %s.\n", printable.Text(name), idle)
					}
				}
				if v.json {
					refused = append(refused, writeJSON(os.Stdout, outcome))
				}
				return errors.Join(refused...)
			})
		},
	}
	v.register(cmd, "the outcome")
	cmd.ValidArgsFunction = v.services
	cmd.Flags().BoolVar(&all, "all", false, "all services")
	if pausing {
		cmd.Flags().StringVar(&why, "reason", "", "`text` that other operators see as the reason")
	}
	return cmd
}

// plainName is a name of the environment that may be shown and logged as one.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@-]{0,63}$`)

// operator is who gives an order, and where; behind sudo first who typed that.
func operator() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if sudo := os.Getenv("SUDO_USER"); sudo != name && plainName.MatchString(sudo) {
		name = sudo + " (" + name + ")"
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}
