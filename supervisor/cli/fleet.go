package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

func balanceCommand() *cobra.Command {
	var v visit
	var dry bool
	cmd := &cobra.Command{
		Use:   "balance",
		Short: "Move services until no node has more than its share of them",
		Long: "Orders switchovers, one at a time, until no node has more than its share of the services that may run there, and\n" +
			"those with one word (spread) are on different ones. Paused services stay, and no service moves to a node that is\n" +
			"less preferred (priority) than the one that it is on. It stops at the first that fails. Type it again to go on.",
		Example: "  understudy balance --dry-run --zk zk1,zk2,zk3",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("balance moves all services; for one: `understudy switchover %s --to NODE`", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return v.long(cmd.Context(), func(
				ctx context.Context, c *control.Cluster, limited func(func(context.Context) error) error,
			) error {
				moves, err := c.Balance(ctx)
				if err != nil {
					return err
				}
				for i, m := range moves {
					if !v.json {
						fmt.Fprintln(stdout, printable.Text(fmt.Sprintf("%s: %s -> %s", m.Service, m.From, m.To)))
					}
					if dry {
						continue
					}
					if err := limited(func(ctx context.Context) error {
						_, err := c.Switchover(ctx, control.SwitchoverRequest{
							Service: m.Service, To: m.To, By: operator(), Tell: func(string) {},
						})
						return err
					}); err != nil {
						return fmt.Errorf("%s, after %d of %d moves: %w", m.Service, i, len(moves), aborted(cmd.Context(), err))
					}
				}
				words := "Done: " + count(len(moves), "service") + " moved.\n"
				switch {
				case len(moves) == 0:
					words = "Nothing to do: no node has more than its share.\n"
				case dry:
					words = count(len(moves), "service") + " would move.\n"
				}
				return v.tell(map[string]any{"moves": append([]control.Move{}, moves...), "done": !dry}, "%s", words)
			})
		},
	}
	v.register(cmd, "the moves")
	v.patient(cmd)
	cmd.Flags().Lookup("timeout").Usage = "how long to wait for each move"
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the moves, and order none")
	return cmd
}

func rollCommand() *cobra.Command {
	var v visit
	var ssh, anew bool
	cmd := &cobra.Command{
		Use:   "roll [--ssh] -- COMMAND [ARG...]",
		Short: "Run a command on one node after the other, without their services",
		Long: "Each node is drained, then COMMAND runs, then the node has to be well for 10 s, and is undrained. Nodes without\n" +
			"active services come first. COMMAND runs here, with UNDERSTUDY_NODE and UNDERSTUDY_HOST in its environment, or with\n" +
			"--ssh on the node's host. The first failure ends it, and leaves that node drained. The same command goes on there.",
		Example: "  understudy roll --ssh --zk zk1,zk2,zk3 -- 'apt-get -y upgrade'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() != 0 {
				return usage("which command? as in `%s --ssh -- apt-get -y upgrade`", cmd.CommandPath())
			}
			if program := map[bool]string{true: "ssh", false: args[0]}[ssh]; !found(program) {
				return usage("there is no program %q here: a shell is `-- sh -c '...'`, and with --ssh the command runs on the node",
					program)
			}
			if v.timeout <= control.Settling {
				return usage("--timeout: %v can never be enough, because a node has to be well for %v after COMMAND: "+
					"write %v, or more where COMMAND takes longer", v.timeout, control.Settling, control.Settling+5*time.Second)
			}
			return v.long(cmd.Context(), func(
				ctx context.Context, c *control.Cluster, limited func(func(context.Context) error) error,
			) error {
				r, err := c.BeginRoll(ctx, strings.Join(args, " "), operator(), anew)
				if err != nil {
					return err
				}
				if len(r.Done) > 0 {
					fmt.Fprintln(stdout, printable.Text("Going on after "+strings.Join(r.Done, ", ")+"."))
				}
				for {
					s, err := c.Status(ctx)
					if err != nil {
						return err
					}
					node, host, others := r.Next(s)
					if node == "" {
						for _, left := range others {
							fmt.Fprintln(stdout, printable.Text("Left out: "+left+"."))
						}
						fmt.Fprintf(stdout, "Done on %s.\n", count(len(r.Done), "node"))
						return c.EndRoll(ctx)
					}
					fmt.Fprintln(stdout, printable.Text("== "+node))
					drained := false
					err = limited(func(ctx context.Context) (err error) {
						drained, err = c.Step(ctx, r, node, operator(), func(ctx context.Context) error {
							return onNode(ctx, node, host, ssh, args)
						})
						return err
					})
					switch {
					case err != nil && drained:
						return fmt.Errorf("on %s, which stays drained: %w (mend it and type the same again; another command needs --anew)",
							node, err)
					case err != nil:
						return fmt.Errorf("on %s: %w", node, err)
					}
				}
			})
		},
	}
	v.register(cmd, "")
	f := cmd.Flags().Lookup("timeout")
	f.DefValue, f.Usage, v.timeout = "15m0s", "how long a node may take", 15*time.Minute
	cmd.Flags().BoolVar(&ssh, "ssh", false, "run COMMAND by a shell on the node's host, by ssh")
	cmd.Flags().BoolVar(&anew, "anew", false, "begin with the first node, whatever roll is not finished")
	return cmd
}

// onNode runs a command for a node. The names come from ZooKeeper: they are data, in the environment, or a plain host.
func onNode(ctx context.Context, node, host string, ssh bool, args []string) error {
	if ssh {
		if !printable.IsHost(host) {
			return fmt.Errorf("its host is not known: %q is plainly none", host)
		}
		args = append([]string{"ssh", "-o", "BatchMode=yes", "--", host}, args...)
	}
	do := exec.CommandContext(ctx, args[0], args[1:]...)
	do.Env = append(os.Environ(), "UNDERSTUDY_NODE="+node, "UNDERSTUDY_HOST="+host)
	do.Stdout, do.Stderr = os.Stdout, os.Stderr
	do.Cancel = func() error { return do.Process.Signal(syscall.SIGTERM) } // and waits: it may be in the midst of an upgrade
	err := do.Run()
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%s was asked to stop: %w", args[0], context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}

func found(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// long is visits for what takes many steps, each of which has the timeout.
func (v *visit) long(
	ctx context.Context,
	do func(ctx context.Context, c *control.Cluster, limited func(func(context.Context) error) error) error,
) error {
	cfg, err := v.election()
	if err != nil {
		return err
	}
	return v.connected(ctx, cfg, func(c *control.Cluster) error {
		return v.explain(do(ctx, c, func(step func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(ctx, v.timeout)
			defer cancel()
			return step(ctx)
		}))
	})
}
